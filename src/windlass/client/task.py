"""A task: a function that can be called now, or handed in to be called by a worker."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from windlass.client.blocking import Portal, blocking
from windlass.client.context import Home
from windlass.client.handle import Handle
from windlass.client.here import this_process
from windlass.client.hooks import place
from windlass.client.keys import KeyTemplate, check_no_template
from windlass.client.options import JobOptions, check_options, check_together
from windlass.client.previous import PREVIOUS
from windlass.client.signature import Signature
from windlass.core.ids import new_id
from windlass.core.job import NewJob
from windlass.core.outcome import Policy
from windlass.core.retry import RetryPolicy
from windlass.errors import InvalidPayload
from windlass.store.contract import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Errors = tuple[type[BaseException], ...]

_HAND_IN = "; use enqueue(...), or using(delay=60).enqueue(...)"
_LINK = "; use job(...), or in chain(...) the task itself"
ELSEWHERE = {
    **dict.fromkeys(("delay", "apply_async", "send", "defer"), _HAND_IN),
    **dict.fromkeys(("s", "si", "signature"), _LINK),
}
"""What other queues call the hand-in, and a job that is made for a chain; and what it is here."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed about a task when it is registered."""

    type: str
    aliases: tuple[str, ...] = ()
    """Types under which older code stored jobs that this task runs; nothing is handed in under them."""
    function: Callable[..., Any]
    handler: Callable[..., Any]
    """What a worker calls: the function with the app's middleware round it, or just the function."""
    signature: Signature
    defaults: dict[str, Any]
    """Fields of a NewJob that the task sets: its queue, priority, budget."""
    key: KeyTemplate | None = None
    """What the concurrency key of a job is made of, unless the job brings its own."""
    retry: RetryPolicy | None
    dead_on: Errors
    returns: Any
    is_async: bool
    in_process: bool = False
    """Whether it runs in a process of its own, which can be killed and cannot hurt the worker."""
    home: Home | None = None
    """The app that it is registered in; None while its task set is in none."""

    def policy(self, otherwise: RetryPolicy) -> Policy:
        """How failures of this task are dealt with; `otherwise` is what its queue says."""
        return Policy(self.retry or otherwise, self.dead_on)

    def fields(self, options: Mapping[str, Any], payload: str, later: Collection[str] = ()) -> dict[str, Any]:
        """Fields of a NewJob for a call: what its options say, then what the task does; checked together.

        Some arguments may come `later`, when the job before it has completed.
        """
        fields = {**self.defaults, **options}
        if self.key is not None and "concurrency_key" not in fields:
            self.key.check_known(later)
            fields["concurrency_key"] = self.key.render(payload)
        if options:
            check_together(fields)
        return fields

    @property
    def place(self) -> str:
        """Where the function was written, for error messages."""
        return place(self.function)


class Desk(Protocol):
    """Where a task hands its jobs in."""

    @property
    def payload_limit(self) -> int: ...

    async def _ready(self) -> Store: ...

    async def _hand_in(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...

    def _portal(self) -> Portal: ...


class TaskJob(NewJob, frozen=True, kw_only=True, gc=False):
    """A job that knows the task it was made by: a chain asks it where to hand in, and what the result is.

    Sent elsewhere or written down it is a plain job: what it was made by is of this process.
    """

    task: "Task[Any, Any, Any]"

    def plain(self) -> NewJob:
        """What the store takes."""
        return NewJob(**{name: getattr(self, name) for name in NewJob.__struct_fields__})

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain, (msgspec.structs.asdict(self.plain()),)


def _plain(fields: dict[str, Any]) -> NewJob:
    return NewJob(**fields)


class Task(Generic[P, R, T]):
    """Calling it runs the plain function; `enqueue` and `aenqueue` hand a job in and keep its signature."""

    def __init__(self, desk: Desk, definition: Definition, options: dict[str, Any] | None = None) -> None:
        self._desk = desk
        self._definition = definition
        self._options = options or {}
        self._connection: object = None
        self.__doc__ = definition.function.__doc__
        self.__name__ = getattr(definition.function, "__name__", definition.type)
        self.__wrapped__ = definition.function

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._definition.function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"Task({self.type!r})"

    @property
    def type(self) -> str:
        """The stable name under which workers know it."""
        return self._definition.type

    @property
    def definition(self) -> Definition:
        """What a worker needs to run it."""
        return self._definition

    def using(self, **options: Unpack[JobOptions]) -> "Task[P, R, T]":
        """The same task with options for the jobs it makes."""
        check_no_template(options.get("concurrency_key"), self._definition.signature.names)
        task: Task[P, R, T] = Task(self._desk, self._definition, {**self._options, **check_options(options)})
        task._connection = options.get("connection", self._connection)
        return task

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job, checked and complete, but not handed in; `PREVIOUS` may stand for arguments of a link of a chain."""
        return self._made(self._definition.signature.bind(args, kwargs))

    def link(self) -> NewJob:
        """The job that a bare task is in a chain, after the first: its first parameter gets the result before it."""
        signature = self._definition.signature
        if signature.first is None:
            raise InvalidPayload("PREVIOUS", f"{self.type} has no parameter for it: give {self.type}.job() instead")
        return self._made(signature.bind((), {signature.first: PREVIOUS}))

    def _made(self, given: dict[str, Any]) -> NewJob:
        later = tuple([name for name, value in given.items() if value is PREVIOUS])
        for name in later:
            del given[name]
        payload = self._definition.signature.encode_bound(given, self._desk.payload_limit)
        fields = self._definition.fields(self._options, payload, later)
        if "id" not in fields:
            fields["id"] = new_id()
        fresh = "" if "id" in self._options else this_process()
        return TaskJob(
            type=self._definition.type,
            payload=payload,
            fresh=fresh,
            takes=tuple([(name, "") for name in later]),
            task=self,
            **fields,
        )

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Hand a job in. When this returns, the job is stored; with `using(connection=...)`, when you commit."""
        job = self.job(*args, **kwargs)
        handles = await self._desk._hand_in([job], [self._definition.returns], self._connection)
        return handles[0]

    enqueue = blocking(aenqueue, here=lambda task, *_, **__: task._connection is not None)

    def _portal(self) -> Portal:
        return self._desk._portal()

    if not TYPE_CHECKING:  # a type checker would take it for a promise of every name

        def __getattr__(self, name: str) -> Any:
            hint = ELSEWHERE.get(name, "")
            raise AttributeError(f"'Task' object has no attribute {name!r}{hint}", name=name, obj=self)

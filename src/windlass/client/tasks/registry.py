"""The tasks of an app, by type."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from windlass.client.graphs.joins import join_nodes
from windlass.client.graphs.map import map_items
from windlass.client.graphs.watch import watch_flow
from windlass.client.groups.watch import stand_for, watch_group
from windlass.client.tasks.hooks import is_function, location
from windlass.client.tasks.keys import KeyTemplate, check_key_options, key_fields, key_template
from windlass.client.tasks.link import Home
from windlass.client.tasks.middleware import Middleware, fitting, wrap
from windlass.client.tasks.options import TaskOptions, check_priority
from windlass.client.tasks.signature import Signature
from windlass.client.tasks.task import Definition
from windlass.client.webhooks.deliver import deliver
from windlass.core.codec import INLINE_LIMIT, check_json, check_size, encode
from windlass.core.flow.queue import check_attempts, check_timeout
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, MAP_TYPE
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE
from windlass.core.jobs.job import MAX_ATTEMPTS
from windlass.core.jobs.retry import RetryPolicy
from windlass.core.names import check_name, type_of
from windlass.core.suggest import suggest, unknown_option
from windlass.core.text import shown
from windlass.core.webhooks.delivery import RETRY, WEBHOOK_QUEUE, WEBHOOK_TYPE
from windlass.errors import ConfigError, InvalidOption, InvalidPayload, UnknownTask

_KNOWN = frozenset(TaskOptions.__annotations__)


class Registry:
    """Definitions by type: names from payloads are looked up only here."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._definitions: dict[str, Definition] = {}
        self._middlewares: list[Middleware] = []
        ours: dict[str, Callable[..., Any]] = {
            GROUP_TYPE: watch_group,
            MEMBER_TYPE: stand_for,
            FLOW_TYPE: watch_flow,
            JOIN_TYPE: join_nodes,
            MAP_TYPE: map_items,
        }
        defined = [define(each, {"type": type_, "max_attempts": MAX_ATTEMPTS}) for type_, each in ours.items()]
        defined += [define(deliver, {"type": WEBHOOK_TYPE, "queue": WEBHOOK_QUEUE, "retry": RETRY, "timeout": 60})]
        self._own = {each.type: msgspec.structs.replace(each, home=home) for each in defined}
        """Windlass's own definitions, which run without the app's middleware."""

    def add(self, definition: Definition) -> None:
        """Register a definition; a second function with the same type or alias is refused."""
        names = (definition.type, *definition.aliases)
        for name in names:
            present = self._definitions.get(name) or self._own.get(name)
            if present is not None:
                alias = "" if name == definition.type == present.type else " (as a type or an alias)"
                raise ConfigError(
                    f"two tasks have the type {name!r}{alias}: {present.location} and {definition.location}; "
                    "give one of them another type=..."
                )
        bound = self._bound(definition)
        self._definitions.update(dict.fromkeys(names, bound))

    def surround(self, middleware: Middleware, *, outermost: bool = False) -> None:
        """Wrap every task, also later ones, in this middleware; it is the outermost or the innermost."""
        before = self._middlewares
        self._middlewares = [middleware, *before] if outermost else [*before, middleware]
        try:
            bound = {name: self._bound(each) for name, each in self._definitions.items()}
        except ConfigError:
            self._middlewares = before
            raise
        self._definitions = bound

    def _bound(self, definition: Definition) -> Definition:
        task = f"task {definition.type} ({definition.location})"
        chosen = fitting(self._middlewares, is_async=definition.is_async, task=task)
        function, context = definition.function, definition.signature.context
        handler = wrap(function, chosen, context, is_async=definition.is_async)
        return msgspec.structs.replace(definition, handler=handler, home=self._home)

    def get(self, type_: str) -> Definition:
        try:
            return self._definitions[type_] if type_ in self._definitions else self._own[type_]
        except KeyError:
            hint = suggest(type_, self._definitions) or "; the app has no tasks"
            raise UnknownTask(type_, hint) from None

    def check(self, type_: str, payload: Any, limit: int = INLINE_LIMIT) -> str:
        """The text of a payload that was given as JSON, checked if this app has the task."""
        if type_ in self._definitions:
            return self._definitions[type_].signature.check(payload, limit)
        if not isinstance(payload, Mapping):
            raise InvalidPayload("payload", f"must be a JSON object of arguments, not {type(payload).__name__}")
        check_json(dict(payload), "payload", most=limit)
        return check_size(encode(dict(payload), "payload"), "payload", limit)

    def __contains__(self, type_: str) -> bool:
        return type_ in self._definitions

    def __iter__(self) -> Iterator[Definition]:
        return iter([each for name, each in self._definitions.items() if name == each.type])

    @property
    def types(self) -> tuple[str, ...]:
        """Every type and alias of the app's tasks, sorted."""
        return tuple(sorted(self._definitions))

    @property
    def runnable(self) -> tuple[str, ...]:
        """The types that a worker can run: the app's and Windlass's own."""
        return tuple(sorted([*self._definitions, *self._own]))

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The parameters of every type and alias that has any."""
        signatures = {name: each.signature for name, each in self._definitions.items()}
        return {name: each.parameters for name, each in sorted(signatures.items()) if each.parameters}


_OF_QUEUE = "is set on a queue: app.queue(name, {}); for each key, on a task: concurrency_key and {}"
_ELSEWHERE = {
    "rate_limit": "it " + _OF_QUEUE.format('rate_limit="10/s"', "key_rate"),
    "max_concurrency": "it " + _OF_QUEUE.format("max_concurrency=4", "key_limit"),
    "tenant": 'it is set on a job: task.using(tenant="acme").enqueue(...)',
    "autoretry_for": "every exception is retried; dead_on=(...) names those that are not",
    "acks_late": "a job is always acknowledged after its attempt, never before",
    "ignore_result": 'it is set on a queue: app.queue(name, retention={"completed": 0})',
    "serializer": "arguments and results are JSON, by the annotations of the function",
    "bind": "a parameter annotated Context gets the context: def task(ctx: Context, ...)",
    **{
        name: f"it is set on a job: task.using({name}=...).enqueue(...)"
        for name in ("delay", "run_at", "expires", "idempotency_key", "tags", "meta", "connection")
    },
}
"""Hints for options that belong elsewhere."""


def define(function: Callable[..., Any], options: Mapping[str, Any], prefix: str = "") -> Definition:
    """A definition from a function and its options; the prefix is put before its type."""
    unknown = [name for name in options if name not in _KNOWN]
    if unknown:
        if unknown[0] in _ELSEWHERE:
            raise InvalidOption(unknown[0], f"is not a task option; {_ELSEWHERE[unknown[0]]}")
        raise unknown_option(unknown[0], _KNOWN, "a task option")
    _check_function(function)
    type_ = check_name(prefix + check_name(options.get("type", type_of(function.__qualname__)), "type"), "type")
    signature = Signature(function, type_)
    return Definition(
        type=type_,
        aliases=_aliases(options.get("aliases", ()), type_),
        function=function,
        handler=function,
        signature=signature,
        defaults=_defaults(options),
        key=_key(options, signature, type_),
        retry=_retry(options.get("retry")),
        dead_on=_dead_on(options.get("dead_on", ())),
        returns=signature.returns,
        is_async=inspect.iscoroutinefunction(function),
        in_process=_in_process(options),
    )


def _check_function(function: Callable[..., Any]) -> None:
    if not is_function(function):
        named = f"; its type is given as @app.task(type={function!r:.100})" if isinstance(function, str) else ""
        if hasattr(function, "definition"):
            named = "; it is a task already, and belongs to one app or set"
        raise ConfigError(f"a task is a function, not {type(function).__name__}{named}")
    name = function.__qualname__
    if function.__name__ == "<lambda>":
        raise ConfigError(f"a lambda ({location(function)}) cannot be a task: write a `def`")
    if _is_method(function):
        raise ConfigError(
            f"{name} is a method, and a worker has no object to call it on: make it a function of its module, or a "
            "static method (@staticmethod above @app.task)"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{name} is a generator; a task is a plain or an async function")


def _is_method(function: Callable[..., Any]) -> bool:
    if inspect.ismethod(function) or isinstance(function, classmethod):
        return True
    within, _, _ = function.__qualname__.rpartition(".")
    if not within or within.endswith("<locals>"):
        return False
    return next(iter(inspect.signature(function).parameters), None) in ("self", "cls")


def _aliases(names: Any, type_: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidOption("aliases", f"must be a list of types, not {type(names).__name__}")
    aliases = tuple(check_name(name, f"aliases[{i}]") for i, name in enumerate(names))
    if len({type_, *aliases}) <= len(aliases):
        raise InvalidOption("aliases", f"of {type_} must differ from its type and from each other")
    return aliases


def _in_process(options: Mapping[str, Any]) -> bool:
    run_in = options.get("run_in")
    if run_in not in (None, "process"):
        raise InvalidOption("run_in", f'must be "process" or left out, not {run_in!r}')
    return run_in == "process"


def _defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "queue" in options:
        fields["queue"] = check_name(options["queue"], "queue")
    if "priority" in options:
        fields["priority"] = check_priority(options["priority"])
    if "timeout" in options:
        fields["timeout"] = check_timeout(options["timeout"])
    if "max_attempts" in options:
        fields["max_attempts"] = check_attempts(options["max_attempts"])
    elif (policy := _retry(options.get("retry"))) is not None:
        fields["max_attempts"] = check_attempts(policy.attempts, "retry.attempts")
    fields |= key_fields(options)
    check_key_options(fields, keyed="concurrency_key" in options)
    return fields


def _key(options: Mapping[str, Any], signature: Signature, type_: str) -> KeyTemplate | None:
    if "concurrency_key" not in options:
        return None
    return key_template(options["concurrency_key"], signature.names, signature.defaults, type_)


def _retry(policy: Any) -> RetryPolicy | None:
    if policy is not None and (isinstance(policy, type) or not isinstance(policy, RetryPolicy)):
        policies = "Exponential, Linear, Fixed, Steps, ByError or another Backoff"
        raise InvalidOption("retry", f"must be {policies}, not {shown(policy)}")
    return policy


def _dead_on(errors: Any) -> tuple[type[BaseException], ...]:
    given = errors if isinstance(errors, tuple | list) else (errors,)
    wrong = [each for each in given if not (isinstance(each, type) and issubclass(each, BaseException))]
    if wrong:
        raise InvalidOption("dead_on", f"must be exception classes, not {wrong[0]!r}")
    return tuple(given)

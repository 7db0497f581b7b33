"""A history of this process's calls, their answers and its handler runs, for the checker in tests/torture.

Switched on by WINDLASS_HISTORY=<folder>: each process appends JSON lines to a file of its own, one write each,
stamped with the monotonic clock that all processes of a machine share. Off, nothing is wrapped.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec

from windlass.core.events import Emit, Event
from windlass.core.jobs.dependencies import parent_results
from windlass.core.jobs.job import Claimed, Enqueued, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.schedules.firing import Fired, Firing
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, Renewal, Rescued, RunnerEnd, Transition
from windlass.store.schedules import DueSchedules
from windlass.store.wrapped import Call, WrappedStore

Facts = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])
HISTORY_FOLDER = "WINDLASS_HISTORY"
RECORDED_ROLES = ("jobs", "leases", "operator", "schedules")


class History:
    """The file of one process."""

    def __init__(self, folder: Path, role: str) -> None:
        self._folder = folder
        self._role = role
        self._file: int | None = None
        self.calls = count(1)

    def write(self, what: str, **facts: Any) -> None:
        """Write one line: it is in the file whole, or not at all."""
        line = {"at": time.monotonic_ns(), "pid": os.getpid(), "role": self._role, "what": what, **facts}
        if self._file is None:
            name = f"{self._role}-{os.getpid()}-{time.monotonic_ns()}.jsonl"
            self._file = os.open(self._folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(self._file, msgspec.json.encode(line) + b"\n")

    def write_event(self, event: Event) -> None:
        """An event, as it is."""
        self.write("event", kind=type(event).__name__, event=msgspec.to_builtins(event))


def history(role: str) -> History | None:
    """A history for this process, if one is wanted."""
    folder = os.environ.get(HISTORY_FOLDER)
    return History(Path(folder), role) if folder else None


def record_events(emit: Emit, role: str) -> Emit:
    """The same listener, and the history beside it."""
    history_ = history(role)
    if history_ is None:
        return emit

    def both(event: Event) -> None:
        history_.write_event(event)
        emit(event)

    return both


def record_calls(store: Store, role: str) -> Store:
    """The same store, with every call that moves jobs or leases written down before and after."""
    history_ = history(role)
    if history_ is None:
        return store

    def wrap(part: str, verb: str, call: Call) -> Call:
        is_recorded = part in RECORDED_ROLES and verb in _REQUEST_FACTS
        return _recorded_call(verb, call, history_) if is_recorded else call

    return cast(Store, WrappedStore(store, wrap))


class Held(Protocol):
    """What a run holds: job, attempt, key."""

    claimed: Claimed


def record_run(run: F) -> F:
    """The same function, which runs a handler, with its start and its end written down."""
    history_ = history("handler")
    if history_ is None:
        return run

    def start(work: Held) -> Facts:
        job = work.claimed
        about = {"job": job.id, "attempt": job.attempt, "type": job.type, "payload": digest(job.payload)}
        history_.write("start", **about)
        return about

    async def run_async(work: Held) -> Any:
        about = start(work)
        outcome = await run(work)
        history_.write("end", outcome=type(outcome).__name__, **about)
        return outcome

    def run_sync(work: Held) -> Any:
        about = start(work)
        outcome = run(work)
        history_.write("end", outcome=type(outcome).__name__, **about)
        return outcome

    return cast(F, run_async if inspect.iscoroutinefunction(run) else run_sync)


def digest(payload: str) -> str:
    """A payload, short enough to be written down again and again."""
    return sha256(payload.encode(errors="replace")).hexdigest()[:16]


def _recorded_call(verb: str, call: Call, history_: History) -> Call:
    """The call in four words: `invoke`, then `ok`, `fail` (nothing was done) or `info` (unknown)."""

    async def recorded_call(*arguments: Any) -> Any:
        number = next(history_.calls)
        history_.write(verb, step="invoke", call=number, **_REQUEST_FACTS[verb](*arguments))
        try:
            answer = await call(*arguments)
        except BaseException as error:
            unsure = getattr(error, "maybe_done", isinstance(error, asyncio.CancelledError))
            history_.write(
                verb, step="info" if unsure else "fail", call=number, problem=f"{type(error).__name__}: {error}"
            )
            raise
        history_.write(verb, step="ok", call=number, **_ANSWER_FACTS[verb](answer))
        return answer

    return recorded_call


def _new(job: NewJob) -> Facts:
    return {
        "job": job.id,
        "type": job.type,
        "queue": job.queue,
        "priority": job.priority,
        "payload": digest(job.payload),
        "key": job.idempotency_key,
        "concurrency_key": job.concurrency_key,
        "tenant": job.tenant,
        "waits": bool(job.delay or job.run_at or job.parents),
        **({"parents": job.parents, "result_params": job.result_params} if job.parents else {}),
        **({"when_ended": True} if job.when_ended else {}),
        **({"schedule": job.schedule, "tick": job.tick} if job.schedule else {}),
    }


def _claimed(job: Claimed) -> Facts:
    about = {"job": job.id, "attempt": job.attempt, "payload": digest(job.payload)}
    if job.result_params is None:
        return about
    given = {
        parent: digest(result) for parent, result in parent_results(job.result_params, job.parent_results).values()
    }
    return {**about, "given": given}


def _settling(settlement: Settlement) -> Facts:
    about = {
        "job": settlement.id,
        "attempt": settlement.attempt,
        "status": settlement.status,
        "outcome": settlement.outcome,
    }
    return (
        {**about, "result": digest(settlement.result or "null")} if settlement.status is Status.COMPLETED else about
    )


def _firing(firing: Firing) -> Facts:
    jobs = [_new(job) for job in firing.jobs]
    return {**{name: getattr(firing, name) for name in firing.__struct_fields__}, "jobs": jobs}


def _fired(fired: list[Fired]) -> Facts:
    return {"fired": [msgspec.to_builtins(each) for each in fired]}


def _found_due(due: DueSchedules) -> Facts:
    return {"now": due.now, "schedules": len(due.schedules)}


def _rescued(jobs: list[Rescued]) -> Facts:
    return {"jobs": [{"job": j.id, "attempt": j.attempt, "status": j.status, "outcome": j.outcome} for j in jobs]}


def _moved(moved: list[Transition | None]) -> Facts:
    return {"done": [each is not None and each.done for each in moved]}


def _ids(ids: list[str], *_: Any) -> Facts:
    return {"jobs": list(ids)}


def _claiming(request: ClaimRequest) -> Facts:
    queues = [quota.queue for quota in request.quotas]
    return {"runner": request.runner, "claim": request.claim, "limit": request.limit, "queues": queues}


def _ending(ended: RunnerEnd) -> Facts:
    return {"runner": ended.runner, "crashed": ended.crashed, "started": sorted(ended.started)}


def _renewed(renewal: Renewal) -> Facts:
    return {"kept": renewal.kept, "lost": renewal.lost}


def _enqueued(answers: list[Enqueued]) -> Facts:
    return {"answers": [[answer.id, answer.existing] for answer in answers]}


_REQUEST_FACTS: dict[str, Callable[..., Facts]] = {
    "enqueue": lambda jobs: {"jobs": [_new(job) for job in jobs]},
    "claim": _claiming,
    "settle": lambda settlements: {"jobs": [_settling(each) for each in settlements]},
    "renew": lambda worker, runners, length: {"worker": worker, "runners": list(runners)},
    "end": _ending,
    "rescue": lambda limit: {},
    "cancel": _ids,
    "retry": _ids,
    "delete": _ids,
    "due": lambda limit: {},
    "fire": lambda firings: {"firings": [_firing(each) for each in firings]},
}
_ANSWER_FACTS: dict[str, Callable[[Any], Facts]] = {
    "enqueue": _enqueued,
    "claim": lambda jobs: {"jobs": [_claimed(job) for job in jobs]},
    "settle": lambda answers: {"answers": list(answers)},
    "renew": _renewed,
    "end": _rescued,
    "rescue": _rescued,
    "cancel": _moved,
    "retry": _moved,
    "delete": _moved,
    "due": _found_due,
    "fire": _fired,
}

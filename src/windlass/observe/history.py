"""A history: what this process asked of the store and what it was told, handler by handler, for a checker to judge.

Switched on by WINDLASS_HISTORY=<folder>: each process appends JSON lines to a file of its own, one write each,
stamped with the monotonic clock that all processes of a machine share. Off, all of this hands back what it was given.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec

from windlass.core.chain import result_texts
from windlass.core.events import Emit, Event
from windlass.core.firing import Fired, Firing
from windlass.core.job import Claimed, Enqueued, NewJob
from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, Moved, Renewal, Rescued, RunnerEnd
from windlass.store.schedules import DueSchedules

Facts = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])
SWITCH = "WINDLASS_HISTORY"


class History:
    """One process's own file."""

    def __init__(self, folder: Path, role: str) -> None:
        self._folder = folder
        self._role = role
        self._file: int | None = None
        self.calls = count(1)

    def write(self, what: str, **facts: Any) -> None:
        """One line: in the file whole, or not at all."""
        line = {"at": time.monotonic_ns(), "pid": os.getpid(), "role": self._role, "what": what, **facts}
        if self._file is None:
            name = f"{self._role}-{os.getpid()}-{time.monotonic_ns()}.jsonl"
            self._file = os.open(self._folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(self._file, msgspec.json.encode(line) + b"\n")

    def hear(self, event: Event) -> None:
        """An event, as it is."""
        self.write("event", kind=type(event).__name__, event=msgspec.to_builtins(event))


def history(role: str) -> History | None:
    """A history for this process, if one is wanted."""
    folder = os.environ.get(SWITCH)
    return History(Path(folder), role) if folder else None


def heard(emit: Emit, role: str) -> Emit:
    """The same listener, and the history beside it."""
    kept = history(role)
    if kept is None:
        return emit

    def both(event: Event) -> None:
        kept.hear(event)
        emit(event)

    return both


def recorded(store: Store, role: str) -> Store:
    """The same store, with every call that moves jobs or leases written down before and after."""
    kept = history(role)
    return store if kept is None else cast(Store, _Recorded(store, kept))


class Held(Protocol):
    """What a run is about."""

    claimed: Claimed


def witnessed(run: F) -> F:
    """The same function, which runs a handler, with its start and its end written down."""
    kept = history("handler")
    if kept is None:
        return run

    def start(work: Held) -> Facts:
        job = work.claimed
        about = {"job": job.id, "attempt": job.attempt, "type": job.type, "payload": digest(job.payload)}
        kept.write("start", **about)
        return about

    async def run_async(work: Held) -> Any:
        about = start(work)
        outcome = await run(work)
        kept.write("end", outcome=type(outcome).__name__, **about)
        return outcome

    def run_sync(work: Held) -> Any:
        about = start(work)
        outcome = run(work)
        kept.write("end", outcome=type(outcome).__name__, **about)
        return outcome

    return cast(F, run_async if inspect.iscoroutinefunction(run) else run_sync)


def digest(payload: str) -> str:
    """A payload, short enough to be written down again and again."""
    return sha256(payload.encode(errors="replace")).hexdigest()[:16]


class _Recorded:
    """A store whose roles are recorded; everything else is the store's own."""

    def __init__(self, store: Store, kept: History) -> None:
        self._store = store
        self._kept = kept
        self.jobs = _Role(store.jobs, kept)
        self.leases = _Role(store.leases, kept)
        self.operator = _Role(store.operator, kept)
        self.schedules = _Role(store.schedules, kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def bounded(self, seconds: float) -> "_Recorded":
        return _Recorded(self._store.bounded(seconds), self._kept)


class _Role:
    def __init__(self, role: Any, kept: History) -> None:
        self._role = role
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._role, name)
        return _noted(name, call, self._kept) if name in _ASKED else call


def _noted(verb: str, call: Callable[..., Awaitable[Any]], kept: History) -> Callable[..., Awaitable[Any]]:
    """The call in four words: `invoke`, then `ok`, `fail` (nothing was done) or `info` (nobody knows)."""

    async def noted(*arguments: Any) -> Any:
        number = next(kept.calls)
        kept.write(verb, step="invoke", call=number, **_ASKED[verb](*arguments))
        try:
            answer = await call(*arguments)
        except BaseException as error:
            unsure = getattr(error, "maybe_done", isinstance(error, asyncio.CancelledError))
            kept.write(
                verb, step="info" if unsure else "fail", call=number, problem=f"{type(error).__name__}: {error}"
            )
            raise
        kept.write(verb, step="ok", call=number, **_ANSWERED[verb](answer))
        return answer

    return noted


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
        **({"parents": job.parents, "takes": job.takes} if job.parents else {}),
        **({"schedule": job.schedule, "tick": job.tick} if job.schedule else {}),
    }


def _claimed(job: Claimed) -> Facts:
    about = {"job": job.id, "attempt": job.attempt, "payload": digest(job.payload)}
    if job.takes is None:
        return about
    given = {parent: digest(result) for parent, result in result_texts(job.takes, job.inputs).values()}
    return {**about, "given": given}


def _settling(settlement: Settlement) -> Facts:
    told = settlement
    about = {"job": told.id, "attempt": told.attempt, "status": told.status, "outcome": told.outcome}
    return {**about, "result": digest(told.result or "null")} if told.status is Status.COMPLETED else about


def _firing(firing: Firing) -> Facts:
    jobs = [_new(job) for job in firing.jobs]
    return {**{name: getattr(firing, name) for name in firing.__struct_fields__}, "jobs": jobs}


def _fired(fired: list[Fired]) -> Facts:
    return {"fired": [msgspec.to_builtins(each) for each in fired]}


def _found_due(due: DueSchedules) -> Facts:
    return {"now": due.now, "schedules": len(due.schedules)}


def _rescued(jobs: list[Rescued]) -> Facts:
    return {"jobs": [{"job": j.id, "attempt": j.attempt, "status": j.status, "outcome": j.outcome} for j in jobs]}


def _moved(moved: list[Moved | None]) -> Facts:
    return {"done": [each is not None and each.done for each in moved]}


def _ids(ids: list[str], *_: Any) -> Facts:
    return {"jobs": list(ids)}


def _claiming(request: ClaimRequest) -> Facts:
    return {"runner": request.runner, "claim": request.claim, "limit": request.limit}


def _ending(ended: RunnerEnd) -> Facts:
    return {"runner": ended.runner, "crashed": ended.crashed, "started": sorted(ended.started)}


def _renewed(renewal: Renewal) -> Facts:
    return {"kept": renewal.kept, "lost": renewal.lost}


def _enqueued(answers: list[Enqueued]) -> Facts:
    return {"answers": [[answer.id, answer.existing] for answer in answers]}


_ASKED: dict[str, Callable[..., Facts]] = {
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
_ANSWERED: dict[str, Callable[[Any], Facts]] = {
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

"""app.actions: verbs on all jobs that match a filter, in the background; stored, so that they survive a crash."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.groups.cancelled import retry_jobs
from windlass.client.groups.waking import cancel_jobs
from windlass.client.runtime.offloaded import drop_blobs
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.action_change import action_change, said_change
from windlass.client.verbs.audit import Actor, current_actor
from windlass.client.verbs.filters import describe_filter, job_filter
from windlass.client.verbs.group import Verbs
from windlass.client.verbs.payloads import drop_payloads
from windlass.core.ids import JobId, is_id, new_id
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import DAY, SECOND, Micros, to_datetime
from windlass.core.tokens import Rights
from windlass.errors import InvalidOption, NotAllowedNow, WindlassError
from windlass.store.contract import Store
from windlass.store.documents import Document
from windlass.store.records import JobFilter, Transition

KIND = "action"
RETENTION: Micros = 30 * DAY
PAGE = 500
ABANDONED: Micros = 15 * SECOND
"""After this long without a step, another process may continue a running action."""
ActionVerb = Literal["retry", "cancel", "delete", "run", "change"]
State = Literal["running", "stopping", "done", "stopped"]


class ActionNotFound(WindlassError):
    """No action has this id, or it is not kept any more."""

    code = "action_not_found"

    def __init__(self, id: str) -> None:
        super().__init__(f"no action {id[:40]!r}")


class _Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    verb: ActionVerb
    wanted: JobFilter
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    error: str | None = None
    by: Actor
    reason: str = ""
    change: JobChange | None = None
    expected: int | None = None
    state: State = "running"
    seen: int = 0
    changed: int = 0
    after: JobId | None = None
    """The id of the last visited job; jobs are visited by id, each once."""
    beat: Micros = 0


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A verb on all jobs that match a filter, and its progress."""

    id: str
    verb: ActionVerb
    filter: str
    by: str
    state: State
    seen: int
    """Jobs that were looked at, within its limits."""
    changed: int
    """Jobs that the verb changed; jobs in another status stay."""
    expected: int | None = None
    """Jobs that matched when it was started; None: not counted."""
    created_at: datetime
    updated_at: datetime
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Only jobs of these queues and types are changed; none: of all."""


_decoder = msgspec.json.Decoder(_Stored)


class Actions(Verbs):
    """Start, watch and stop actions on many jobs."""

    async def astart(
        self,
        verb: ActionVerb,
        wanted: Mapping[str, Any],
        *,
        reason: str = "cancelled by an operator",
        rights: Rights | None = None,
        error: str | None = None,
        change: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> Action:
        """Store an action on all jobs that match (the filters of `jobs.list`); `run` or a coordinator does it.

        With `rights`, only on jobs that those cover; with `error`, only on jobs whose last error is of this type
        ("": on those without one). `change` is what the verb `change` sets: priority, queue, and delay or run_at.
        `expected` is how many jobs match, for its progress.
        """
        if verb not in get_args(ActionVerb):
            raise InvalidOption("verb", f"{verb!r:.100} is not one of {', '.join(get_args(ActionVerb))}")
        stored = _Stored(
            verb=verb,
            wanted=job_filter(**wanted),
            queues=tuple(sorted(rights.queues)) if rights else (),
            types=tuple(sorted(rights.types)) if rights else (),
            error=None if error is None else check_reason(error, "error"),
            by=current_actor(self._home.actor),
            reason=check_reason(reason),
            change=action_change(verb, change),
            expected=expected,
            beat=_now(),
        )
        id_ = new_id()
        await (await self._home._ready()).documents.add(KIND, id_, _text(stored), RETENTION)
        await self._audit(f"jobs.{verb}", _described(stored), after={"action": id_, **said_change(stored.change)})
        return await self.aget(id_)

    async def aget(self, id: str) -> Action:
        """One action."""
        return _action(await self._document(id))

    async def alist(self, limit: int = 50) -> list[Action]:
        """The newest actions first."""
        return [_action(each) for each in await (await self._home._ready()).documents.list(KIND, limit)]

    async def astop(self, id: str) -> Action:
        """Stop a running action after its current page."""
        while True:
            document = await self._document(id)
            stored = _decoder.decode(document.data)
            if stored.state != "running":
                raise NotAllowedNow("stop", id, stored.state)
            stopping = _text(msgspec.structs.replace(stored, state="stopping"))
            if await (await self._home._ready()).documents.replace(KIND, id, stopping, document.version):
                await self._audit("action.stop", id)
                return await self.aget(id)

    async def arun(self, id: str) -> Action:
        """Run an action to its end; returns early if another process continues it."""
        while await run_page(await self._home._ready(), self._home.offload(), id):
            pass
        return await self.aget(id)

    async def _document(self, id: str) -> Document:
        found = (await (await self._home._ready()).documents.get(KIND, [id]))[0] if is_id(id) else None
        if found is None:
            raise ActionNotFound(id)
        return found

    start = blocking(astart)
    get = blocking(aget)
    list = blocking(alist)
    stop = blocking(astop)
    run = blocking(arun)


async def abandoned(store: Store) -> list[str]:
    """The ids of running actions that no process continues."""
    found = [(each.id, _decoder.decode(each.data)) for each in await store.documents.list(KIND, 100)]
    old = _now() - ABANDONED
    return [id_ for id_, stored in found if stored.state in ("running", "stopping") and stored.beat < old]


async def run_page(store: Store, blobs: Offload | None, id: str) -> bool:
    """Run one page of an action; returns whether this process continues."""
    document = (await store.documents.get(KIND, [id]))[0]
    if document is None:
        return False
    stored = _decoder.decode(document.data)
    if stored.state not in ("running", "stopping"):
        return False
    ids: Sequence[JobId] = ()
    seen = changed = 0
    if stored.state == "running":
        ids = await store.operator.select(stored.wanted, PAGE, stored.after)
        seen, changed = await _do(store, blobs, stored, ids)
    ended: dict[str, Any] = {"state": "stopped" if stored.state == "stopping" else "done"} if not ids else {}
    after = ids[-1] if ids else stored.after
    step = {"seen": stored.seen + seen, "changed": stored.changed + changed, "after": after, "beat": _now()}
    while not await store.documents.replace(
        KIND, id, _text(msgspec.structs.replace(stored, **step, **ended)), document.version
    ):
        # The action was stopped, or another process continues it and has written a later beat.
        again = (await store.documents.get(KIND, [id]))[0]
        if again is None:
            return False
        other = _decoder.decode(again.data)
        if other.after != stored.after or other.state not in ("running", "stopping"):
            return False
        document, stored = again, msgspec.structs.replace(stored, state=other.state)
    return bool(ids)


async def _do(store: Store, blobs: Offload | None, stored: _Stored, ids: Sequence[JobId]) -> tuple[int, int]:
    """Apply the verb to these jobs within the limits; returns how many were visited and how many changed.

    A job must be at the version whose limits were checked; one that has changed since is checked again.
    """
    if not stored.queues and not stored.types and stored.error is None:
        return len(ids), _count(await _apply(store, blobs, stored, ids, ANY_VERSION)) if ids else 0
    seen = changed = 0
    while ids:
        covered = await _covered(store, stored, ids)
        moved = await _apply(store, blobs, stored, list(covered), covered) if covered else []
        ids = [each.id for each in moved if each is not None and each.stale]
        seen, changed = seen + len(covered) - len(ids), changed + _count(moved)
    return seen, changed


async def _covered(store: Store, stored: _Stored, ids: Sequence[JobId]) -> Versions:
    """The jobs that the limits cover, with their versions."""
    rights = Rights(scopes=frozenset(), queues=frozenset(stored.queues), types=frozenset(stored.types))
    jobs = [job for job in await store.operator.get(ids) if job is not None]
    return {
        job.id: job.version for job in jobs if rights.covers(job.queue, job.type) and _has_error(job, stored.error)
    }


def _count(moved: Sequence[Transition | None]) -> int:
    return sum(1 for each in moved if each is not None and each.done)


def _has_error(job: Job, error: str | None) -> bool:
    return error is None or error == (job.error.type if job.error else "")


def _described(stored: _Stored) -> str:
    named = "" if stored.error is None else f" error={stored.error or 'none'}"
    return describe_filter(stored.wanted) + named


async def _apply(
    store: Store, blobs: Offload | None, stored: _Stored, ids: Sequence[JobId], versions: Versions
) -> Sequence[Transition | None]:
    match stored.verb:
        case "retry":
            return await retry_jobs(store, ids, versions)
        case "cancel":
            return await cancel_jobs(store.operator, ids, stored.reason, versions)
        case "run":
            return await store.operator.run_now(ids, versions)
        case "change":
            return await store.operator.change(ids, stored.change or JobChange(), versions)
        case "delete":
            moved = await store.operator.delete(ids, versions)
            await drop_payloads(store.documents, moved)
            await drop_blobs(store.operator, blobs, moved)
            return moved


def _now() -> Micros:
    return time.time_ns() // 1000


def _text(stored: _Stored) -> str:
    return msgspec.json.encode(stored).decode()


def _action(document: Document) -> Action:
    stored = _decoder.decode(document.data)
    return Action(
        id=document.id,
        verb=stored.verb,
        filter=_described(stored),
        by=stored.by.name,
        state=stored.state,
        seen=stored.seen,
        changed=stored.changed,
        expected=stored.expected,
        created_at=to_datetime(document.created_at),
        updated_at=to_datetime(stored.beat),
        queues=stored.queues,
        types=stored.types,
    )

"""app.jobs, app.queues, app.workers, app.stats: the verbs of people and programs, each also with an `a`."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from windlass.client.blocking import Portal, blocking
from windlass.client.options import check_options
from windlass.client.registry import Registry
from windlass.core.change import JobChange
from windlass.core.ids import LENGTH, check_beginning, check_id, lowest
from windlass.core.job import Job
from windlass.core.meter import KEPT, Recent
from windlass.core.moments import SECOND, duration
from windlass.core.names import check_name
from windlass.core.queue import Queue, settings
from windlass.core.retry import StoredPolicy
from windlass.core.status import Status
from windlass.errors import InvalidName, InvalidOption, JobNotFound, KeyConflict, NotAllowedNow
from windlass.store.contract import OperatorStore, Store
from windlass.store.records import Counts, JobFilter, Moved, Page, WorkerInfo

LARGEST_PAGE = 1000
_BATCH = 500


class Home(Protocol):
    """What the verbs need of their app."""

    registry: Registry

    async def _ready(self) -> Store: ...

    def _portal(self) -> Portal: ...


class _Verbs:
    def __init__(self, home: Home) -> None:
        self._home = home

    def _portal(self) -> Portal:
        return self._home._portal()


class Jobs(_Verbs):
    """Look at jobs and act on them."""

    async def aget(self, id: str) -> Job:
        """One job, wherever it is in its life."""
        store = await self._home._ready()
        job = (await store.operator.get([check_id(id)]))[0]
        if job is None:
            raise JobNotFound(id)
        return job

    async def alist(
        self,
        *,
        status: str | Sequence[str] = (),
        type: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        tag: str | None = None,
        parent: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job]:
        """Jobs, newest first; `next_cursor` continues the list."""
        _check_limit(limit)
        wanted = job_filter(status=status, type=type, queue=queue, tenant=tenant, tag=tag, parent=parent)
        store = await self._home._ready()
        return await store.operator.list(wanted, limit, cursor)

    async def afailures(self, limit: int = 10) -> Sequence[Job]:
        """Failed and dead jobs, the one that failed last first."""
        _check_limit(limit)
        store = await self._home._ready()
        return await store.operator.failures(limit)

    async def acancel(self, id: str, reason: str = "cancelled by an operator") -> Job:
        """End a waiting job, or ask a running one to stop (`cancel_requested`)."""
        store = await self._home._ready()
        before = await self.aget(id)
        await self._done("cancel", id, (await store.operator.cancel([before.id], reason))[0])
        # A queue may keep nothing of cancelled jobs: then this is all that is left of it.
        after = (await store.operator.get([before.id]))[0]
        return after or msgspec.structs.replace(before, status=Status.CANCELLED, reason=reason)

    async def aretry(self, id: str) -> Job:
        """Run a dead, cancelled, completed or failed job again, now, with a fresh budget."""
        store = await self._home._ready()
        moved = (await store.operator.retry([check_id(id)]))[0]
        await self._done("retry", id, moved)
        return await self.aget(id)

    async def arun_now(self, id: str) -> Job:
        """Let a scheduled or failed job run now instead of at its time; its budget stays as it is."""
        store = await self._home._ready()
        moved = (await store.operator.run_now([check_id(id)]))[0]
        await self._done("run", id, moved)
        return await self.aget(id)

    async def achange(
        self,
        id: str,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        payload: Mapping[str, Any] | None = None,
        queue: str | None = None,
    ) -> Job:
        """Change a waiting job. A new payload is checked like a hand-in, if this app knows the task."""
        given = {"priority": priority, "run_at": run_at, "delay": delay, "queue": queue}
        fields = check_options({name: value for name, value in given.items() if value is not None})
        if payload is not None:
            fields["payload"] = self._home.registry.check((await self.aget(id)).type, payload)
        if not fields:
            raise InvalidOption("change", "nothing to change; there are priority, run_at, delay, payload, queue")
        store = await self._home._ready()
        moved = (await store.operator.change([check_id(id)], JobChange(**fields)))[0]
        await self._done("change", id, moved)
        return await self.aget(id)

    async def afind(self, beginning: str) -> str:
        """The id that begins so, if exactly one does: at least four characters of it."""
        if len(beginning) == LENGTH:
            return check_id(beginning)
        begins = check_beginning(beginning)
        store = await self._home._ready()
        # Ids are ordered as text: those that begin so are the next ones after the smallest that could.
        after = await store.operator.select(JobFilter(), _BATCH, lowest(begins))
        found = [each for each in after if each.startswith(begins)]
        if not found:
            raise JobNotFound(f"{begins}…")
        if len(found) > 1:
            many = f"at least {_BATCH}" if len(found) == _BATCH else str(len(found))
            raise InvalidName("id", f"{many} jobs have an id that begins with {begins!r}; give more of it")
        return found[0]

    async def adelete(self, id: str) -> None:
        """Drop a finished job and all that is kept of it."""
        store = await self._home._ready()
        await self._done("delete", id, (await store.operator.delete([check_id(id)]))[0])

    async def aretry_all(self, /, **wanted: Any) -> int:
        """Retry every job that matches (the filters of `list`): how many."""
        return await self._each(wanted, lambda operator, ids: operator.retry(ids))

    async def acancel_all(self, /, reason: str = "cancelled by an operator", **wanted: Any) -> int:
        """Cancel every job that matches (the filters of `list`): how many."""
        return await self._each(wanted, lambda operator, ids: operator.cancel(ids, reason))

    async def adelete_all(self, /, **wanted: Any) -> int:
        """Drop every finished job that matches (the filters of `list`): how many."""
        return await self._each(wanted, lambda operator, ids: operator.delete(ids))

    async def _done(self, verb: str, id: str, moved: Moved | None) -> None:
        if moved is None:
            raise JobNotFound(id)
        if moved.holder is not None:
            raise KeyConflict((await self.aget(id)).idempotency_key or "", moved.holder)
        if not moved.done:
            raise NotAllowedNow(verb, id, moved.status)

    async def _each(
        self,
        wanted: Mapping[str, Any],
        verb: Callable[[OperatorStore, Sequence[str]], Coroutine[Any, Any, list[Moved | None]]],
    ) -> int:
        """Page by page from the oldest: each page is atomic, the whole is not, and no job is met twice."""
        matching, after, done = job_filter(**wanted), None, 0
        store = await self._home._ready()
        while ids := await store.operator.select(matching, _BATCH, after):
            moved = await verb(store.operator, ids)
            done += sum(1 for each in moved if each is not None and each.done)
            after = ids[-1]
        return done

    get = blocking(aget)
    failures = blocking(afailures)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    run_now = blocking(arun_now)
    change = blocking(achange)
    find = blocking(afind)
    delete = blocking(adelete)
    retry_all = blocking(aretry_all)
    cancel_all = blocking(acancel_all)
    delete_all = blocking(adelete_all)
    list = blocking(alist)


class Queues(_Verbs):
    """Look at queues, change them, pause them."""

    async def aget(self, name: str) -> Queue:
        """One queue; one that nobody has used has the default settings."""
        check_name(name, "queue")
        queues = {queue.name: queue for queue in await self.alist()}
        return queues.get(name, Queue(name=name))

    async def aset(
        self,
        name: str,
        *,
        max_attempts: int | None = None,
        retry: StoredPolicy | None = None,
        timeout: float | timedelta | None = None,
        retention: Mapping[str, float | timedelta] | None = None,
    ) -> Queue:
        """Replace the operator's change of a queue; it wins over what the code declares. Nothing given: undo it."""
        changed = settings(max_attempts=max_attempts, retry=retry, timeout=timeout, retention=retention)
        store = await self._home._ready()
        return await store.queues.change(check_name(name, "queue"), changed)

    async def apause(self, name: str, length: float | timedelta | None = None) -> Queue:
        """Claim no more from it, for a time or until resumed; running jobs go on."""
        micros = None if length is None else duration(length, "length")
        store = await self._home._ready()
        return await store.queues.pause(check_name(name, "queue"), micros)

    async def aresume(self, name: str) -> Queue:
        """Claim from it again."""
        store = await self._home._ready()
        return await store.queues.resume(check_name(name, "queue"))

    async def alist(self) -> list[Queue]:
        """Every queue that was declared, changed, paused or used."""
        store = await self._home._ready()
        return await store.queues.list()

    get = blocking(aget)
    set = blocking(aset)
    pause = blocking(apause)
    resume = blocking(aresume)
    list = blocking(alist)


class Workers(_Verbs):
    """Who works."""

    async def alist(self) -> list[WorkerInfo]:
        """The workers that are alive."""
        store = await self._home._ready()
        return await store.workers.list()

    list = blocking(alist)


class Stats(_Verbs):
    """How much of what."""

    async def acounts(self) -> Counts:
        """Jobs by queue and status, exact."""
        store = await self._home._ready()
        return await store.operator.counts()

    async def arecent(self, length: float | timedelta = 300) -> Recent:
        """What ended in the last seconds, at most an hour: by slots of time, queue and type.

        Statistics, not a ledger: runners hand them in every two seconds, and one that dies takes the last ones along.
        """
        micros = duration(length, "length")
        if not 0 < micros <= KEPT:
            raise InvalidOption("length", f"must be up to {KEPT // SECOND} seconds, and more than none")
        store = await self._home._ready()
        return await store.stats.recent(micros)

    async def aoldest(self) -> dict[str, float]:
        """How many seconds the pending job that waits longest has waited, for each queue that has any."""
        store = await self._home._ready()
        return {queue: micros / SECOND for queue, micros in (await store.stats.oldest()).items()}

    counts = blocking(acounts)
    recent = blocking(arecent)
    oldest = blocking(aoldest)


def job_filter(
    *,
    status: str | Sequence[str] = (),
    type: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    tag: str | None = None,
    parent: str | None = None,
) -> JobFilter:
    """Which jobs, checked."""
    statuses = (status,) if isinstance(status, str) else tuple(status)
    for each in statuses:
        if each not in set(Status):
            raise InvalidOption("status", f"{each!r} is not one of {', '.join(Status)}")
    return JobFilter(
        status=tuple(Status(each) for each in statuses),
        type=None if type is None else check_name(type, "type"),
        queue=None if queue is None else check_name(queue, "queue"),
        tenant=None if tenant is None else check_name(tenant, "tenant"),
        tag=None if tag is None else check_name(tag, "tag"),
        parent=None if parent is None else check_id(parent, "parent"),
    )


def _check_limit(limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_PAGE:
        raise InvalidOption("limit", f"must be a whole number from 1 to {LARGEST_PAGE}, not {limit!r}")

"""app.jobs: verbs on jobs, each also with the prefix `a`."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Unpack

import msgspec

from windlass.client.groups.cancelled import retry_jobs
from windlass.client.groups.waking import cancel_jobs
from windlass.client.handle import CANCELLED
from windlass.client.runtime.offloaded import drop_blobs, with_values, without_values
from windlass.client.runtime.portal import blocking, refuse_on_loop
from windlass.client.tasks.options import check_options
from windlass.client.verbs.filters import (
    JobFilters,
    check_every,
    check_limit,
    count,
    describe_filter,
    each_page,
    job_filter,
    list_page,
)
from windlass.client.verbs.find import find_id, job_id
from windlass.client.verbs.group import Verbs
from windlass.client.verbs.links import Links, held_up_by, links_of
from windlass.client.verbs.payloads import EarlierPayload, change_payload, drop_payloads, earlier_payloads
from windlass.client.verbs.transitions import require_done
from windlass.core.ids import JobId, JobRef
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import Duration
from windlass.core.status import Status
from windlass.core.why.explain import Why, explain
from windlass.errors import InvalidOption, JobNotFound
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Page, Transition

_BATCH = 500


class Jobs(Verbs):
    """Read jobs and act on them.

    Verbs that take a `version` raise ChangedSince if the job has another one by then, and change nothing.
    """

    async def aget(self, id: JobRef, *, fetch: bool = True) -> Job:
        """One job, in any status; raises JobNotFound.

        A payload or result in the blob store is fetched, unless `fetch` is false. Then, or if that fails, the
        job has `{"blob": {"size": …, "sha256": …}}` in its place, with the `problem` if there is one.
        """
        job = await self._look(id)
        return await with_values(self._home.offload(), job) if fetch else without_values(job)

    async def _look(self, id: JobRef) -> Job:
        name = job_id(id)
        store = await self._home._ready()
        job = (await store.operator.get([name]))[0]
        if job is None:
            raise JobNotFound(name)
        return job

    async def alist(self, *, limit: int = 50, cursor: str | None = None, **wanted: Unpack[JobFilters]) -> Page[Job]:
        """Jobs, newest first: `list(status="dead", type=task)`; see `JobFilters`. `next_cursor` continues the list.

        A page is full while there are more jobs, unless matches are rare: a call reads at most 200,000 jobs, and its
        page may then be short, or empty with a `next_cursor`. `iter` goes on by itself. Blobs are not fetched.
        Jobs of flows with a name, and jobs with an id of yours that is no UUIDv7, come last: no time is in their ids.
        """
        check_limit(limit)
        page = await list_page((await self._home._ready()).operator, job_filter(**wanted), limit, cursor)
        return Page(tuple(map(without_values, page.items)), page.next_cursor)

    async def aiter(self, **wanted: Unpack[JobFilters]) -> AsyncIterator[Job]:
        """All jobs that match (the filters of `list`), newest first: `async for job in app.jobs.aiter(…)`.

        They are read page by page. A job that changes meanwhile is returned as it is when its page is read.
        """
        page = await self.alist(limit=_BATCH, **wanted)
        for job in page:
            yield job
        while page.next_cursor is not None:
            page = await self.alist(limit=_BATCH, cursor=page.next_cursor, **wanted)
            for job in page:
                yield job

    def iter(self, **wanted: Unpack[JobFilters]) -> Iterator[Job]:
        """All jobs that match (the filters of `list`), newest first, read page by page.

        A job that changes meanwhile is returned as it is when its page is read.
        """
        refuse_on_loop("iter", "async for job in aiter()")
        page = self.list(limit=_BATCH, **wanted)
        yield from page
        while page.next_cursor is not None:
            page = self.list(limit=_BATCH, cursor=page.next_cursor, **wanted)
            yield from page

    async def acount(self, *, most: int | None = None, **wanted: Unpack[JobFilters]) -> int:
        """How many jobs match (the filters of `list`).

        By `status` and `queue` alone it is as cheap as `app.stats.counts()`; else the ids of the matching jobs are
        read, page by page, until there are more than `most`.
        """
        matching = job_filter(**wanted)
        return await count((await self._home._ready()).operator, matching, most)

    async def alinks(self, id: JobRef, *, limit: int = 100) -> Links:
        """The chain of a job, in order: at most `limit` links before it, and as many after it.

        A job without a chain is a chain of one. Blobs are not fetched.
        """
        check_limit(limit)
        store = await self._home._ready()
        return await links_of(store.operator, await self._look(id), limit)

    async def afailures(self, limit: int = 10) -> Sequence[Job]:
        """Failed and dead jobs, the latest failure first."""
        check_limit(limit)
        store = await self._home._ready()
        return [without_values(job) for job in await store.operator.failures(limit)]

    async def awhy(self, id: JobRef, *, sees: Callable[[Job], bool] | None = None, notes: bool = True) -> Why:
        """Why a job does not run, and when it may: reasons, most severe first, each with what to do.

        For a running job: how it runs; for a finished one: how it ended. Another job is named as its cause, or for
        what it holds, only if the caller `sees` that one; the note of its progress only with `notes`.
        """
        name = job_id(id)
        store = await self._home._ready()
        found = await store.operator.why_facts(name)
        if found is None:
            raise JobNotFound(name)
        cause = await held_up_by(store.operator, found.job)
        found = msgspec.structs.replace(found, cause=cause)
        if sees is not None:
            found = found.naming({job.id for job in await store.operator.get(found.named) if job and sees(job)})
        return explain(found if notes else found.without_note())

    async def acancel(self, id: JobRef, reason: str = CANCELLED, *, version: str | None = None) -> Job:
        """Cancel a waiting job, or ask a running one to stop (`cancel_requested`)."""
        check_reason(reason)
        store = await self._home._ready()
        before = await self.aget(id, fetch=False)
        moved = await cancel_jobs(store.operator, [before.id], reason, _only(before.id, version))
        await require_done(store.operator, "cancel", before.id, moved[0])
        # The queue may keep no cancelled jobs, so this audit entry may be the last record of it.
        after = (await store.operator.get([before.id]))[0]
        after = after or msgspec.structs.replace(before, status=Status.CANCELLED, reason=reason)
        await self._audit("job.cancel", before.id, before=_state(before), after=_state(after))
        return without_values(after)

    async def aretry(
        self, id: JobRef, *, payload: Mapping[str, Any] | None = None, version: str | None = None
    ) -> Job:
        """Run a dead, cancelled, completed or failed job again, now, with a new budget of attempts.

        A dead or failed one may get another `payload`, which is written first: see `change`.
        """
        name = job_id(id)
        if payload is not None:
            changed = await self.achange(name, payload=payload, version=version)
            version = None if version is None else changed.version
        store, before = await self._home._ready(), await self._look(name)
        moved = await retry_jobs(store, [name], _only(name, version))
        await require_done(store.operator, "retry", name, moved[0])
        return await self._audited("job.retry", before)

    async def arun_now(self, id: JobRef, *, version: str | None = None) -> Job:
        """Run a scheduled or failed job now instead of at its time; its budget stays."""
        store, before = await self._home._ready(), await self._look(id)
        moved = await store.operator.run_now([before.id], _only(before.id, version))
        await require_done(store.operator, "run", before.id, moved[0])
        return await self._audited("job.run", before)

    async def achange(
        self,
        id: JobRef,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        payload: Mapping[str, Any] | None = None,
        queue: str | None = None,
        version: str | None = None,
    ) -> Job:
        """Change a waiting job, or the payload of a dead one.

        A new payload is checked like an enqueue, if this app knows the task; `earlier_payloads` has the old one.
        """
        given = {"priority": priority, "run_at": run_at, "delay": delay, "queue": queue}
        fields = check_options({name: value for name, value in given.items() if value is not None})
        if payload is None and not fields:
            raise InvalidOption("change", "nothing to change; there are priority, run_at, delay, payload, queue")
        store, before = await self._home._ready(), await self._look(id)
        name = before.id
        if payload is not None:
            moved = await change_payload(self._home, store, name, payload, fields, version)
        else:
            moved = (await store.operator.change([name], JobChange(**fields), _only(name, version)))[0]
        await require_done(store.operator, "change", name, moved)
        said = [*fields, "payload"] if payload is not None else fields
        return await self._audited("job.change", before, changed=sorted(said))

    async def aearlier_payloads(self, id: JobRef) -> Sequence[EarlierPayload]:
        """The payloads that a job had before operators changed them, the newest first; kept for 90 days."""
        return await earlier_payloads((await self._home._ready()).documents, await self._look(id))

    async def afind(self, part: str) -> str:
        """The id with this prefix, or else suffix, if exactly one matches; at least four characters.

        Ids made together have the same prefix. Suffixes are searched among the newest jobs only, some thousands; if
        there are more, the suffix must have eight characters.
        """
        return await find_id((await self._home._ready()).operator, part)

    async def adelete(self, id: JobRef, *, version: str | None = None) -> None:
        """Delete a finished job with its payload, result and log."""
        store, before = await self._home._ready(), await self._look(id)
        moved = await self._delete(store.operator, [before.id], _only(before.id, version))
        await require_done(store.operator, "delete", before.id, moved[0])
        await self._audit("job.delete", before.id, before=_state(before))

    async def aretry_all(self, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        """Retry every job that matches (the filters of `list`), without a filter `all=True`; returns how many."""
        store = await self._home._ready()
        return await self._each("jobs.retry", job_filter(**wanted), all, lambda _, ids: retry_jobs(store, ids))

    async def acancel_all(self, reason: str = CANCELLED, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        """Cancel every job that matches (the filters of `list`), without a filter `all=True`; returns how many."""
        verb = partial(cancel_jobs, reason=check_reason(reason))
        return await self._each("jobs.cancel", job_filter(**wanted), all, verb)

    async def adelete_all(self, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        """Delete every finished job that matches (the filters of `list`), without a filter `all=True`; returns how
        many.
        """
        return await self._each("jobs.delete", job_filter(**wanted), all, self._delete)

    async def _delete(
        self, operator: OperatorStore, ids: Sequence[str], versions: Versions = ANY_VERSION
    ) -> list[Transition | None]:
        blobs = self._home.offload()
        moved = await operator.delete(ids, versions)
        await drop_payloads((await self._home._ready()).documents, moved)
        await drop_blobs(operator, blobs, moved)
        return moved

    async def _audited(self, action: str, before: Job, **more: Any) -> Job:
        """The job now, and an audit entry with its states before and after."""
        job = await self.aget(before.id, fetch=False)
        await self._audit(action, job.id, before=_state(before), after={**_state(job), **more})
        return job

    async def _each(
        self,
        action: str,
        wanted: JobFilter,
        every: bool,
        verb: Callable[[OperatorStore, Sequence[str]], Coroutine[Any, Any, list[Transition | None]]],
    ) -> int:
        check_every(wanted, every)
        store = await self._home._ready()
        count = await each_page(store.operator, wanted, verb)
        await self._audit(action, describe_filter(wanted), after={"jobs": count})
        return count

    get = blocking(aget)
    count = blocking(acount)
    links = blocking(alinks)
    failures = blocking(afailures)
    why = blocking(awhy)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    run_now = blocking(arun_now)
    change = blocking(achange)
    earlier_payloads = blocking(aearlier_payloads)
    find = blocking(afind)
    delete = blocking(adelete)
    retry_all = blocking(aretry_all)
    cancel_all = blocking(acancel_all)
    delete_all = blocking(adelete_all)
    list = blocking(alist)


def _only(id: JobId, version: str | None) -> Versions:
    return ANY_VERSION if version is None else {id: version}


def _state(job: Job) -> dict[str, Any]:
    """What the audit keeps of a job."""
    fields = ("status", "queue", "type", "reason", "priority", "run_at", "attempt")
    return {name: getattr(job, name) for name in fields}

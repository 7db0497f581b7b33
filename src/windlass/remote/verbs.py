"""The verbs of `app.jobs`, `app.queues`, `app.workers`, `app.stats` and `app.audit`, through the server."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack

import msgspec

from windlass.client.handle import CANCELLED
from windlass.client.tasks.options import check_options
from windlass.client.verbs.actions import Action, ActionVerb
from windlass.client.verbs.audit import AuditEntry
from windlass.client.verbs.audit_log import Audit
from windlass.client.verbs.filters import JobFilters, TaskType, check_every, check_limit, job_filter, type_name
from windlass.client.verbs.find import job_id
from windlass.client.verbs.jobs import Jobs
from windlass.client.verbs.links import Links
from windlass.client.verbs.payloads import EarlierPayload
from windlass.client.verbs.queues import Queues, checked_settings
from windlass.client.verbs.stats import MAX_POINTS, Stats, Step, TimelineOptions, Workers, check_names, check_recent
from windlass.core.codec import encode
from windlass.core.flow.queue import Queue, QueueOptions, QueueSettings, settings
from windlass.core.ids import LENGTH, JobRef, check_id, check_part
from windlass.core.jobs.job import Job
from windlass.core.jobs.outcome import check_reason
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.names import check_name
from windlass.core.stats.meter import Recent, SumBy
from windlass.core.stats.timeline import By, Timeline, Times
from windlass.core.why.explain import Why
from windlass.errors import InvalidOption, QueueNotFound
from windlass.remote.connection import ThroughServer
from windlass.server.api.audit import AuditList
from windlass.server.api.jobs import FoundId, JobList, JobRecord, PayloadList
from windlass.server.api.live_workers import WorkerList
from windlass.server.api.queues import Purged, QueueList, QueueRecord, SettingsRecord, settings_record
from windlass.server.api.stats import JobCount, StatsRecord
from windlass.store.records import Counts, JobFilter, Page, WorkerInfo

POLL_SECONDS = 0.5
T = TypeVar("T")


class RemoteJobs(ThroughServer, Jobs):
    """Jobs behind a server."""

    async def aget(self, id: JobRef, *, fetch: bool = True) -> Job:
        return await self._connection.get(_job(id), Job, fetch=fetch)

    async def _record(self, id: JobRef) -> JobRecord:
        return await self._connection.get(_job(id), JobRecord)

    async def alist(self, *, limit: int = 50, cursor: str | None = None, **wanted: Unpack[JobFilters]) -> Page[Job]:
        check_limit(limit)
        query = _query(job_filter(**wanted))
        page = await self._connection.get("/jobs", JobList, **query, limit=limit, cursor=cursor)
        return Page(tuple(page.jobs), page.next_cursor)

    async def acount(self, *, most: int | None = None, **wanted: Unpack[JobFilters]) -> int:
        found = await self._connection.get("/jobs/count", JobCount, **_query(job_filter(**wanted)))
        if found.exact or (most is not None and found.count > most):
            return found.count
        return len([job async for job in self.aiter(**wanted)])

    async def alinks(self, id: JobRef, *, limit: int = 100) -> Links:
        check_limit(limit)
        return await self._connection.get(f"{_job(id)}/links", Links, limit=limit)

    async def afailures(self, limit: int = 10) -> Sequence[Job]:
        check_limit(limit)
        query = {"status": ["failed", "dead"], "sort": "failure", "limit": limit}
        return (await self._connection.get("/jobs", JobList, **query)).jobs

    async def awhy(self, id: JobRef, *, sees: Callable[[Job], bool] | None = None, notes: bool = True) -> Why:
        return await self._connection.get(f"{_job(id)}/why", Why)

    async def acancel(self, id: JobRef, reason: str = CANCELLED, *, version: str | None = None) -> Job:
        query = {"reason": check_reason(reason)}
        return await self._connection.call("DELETE", _job(id), Job, query=query, version=version)

    async def aretry(
        self, id: JobRef, *, payload: Mapping[str, Any] | None = None, version: str | None = None
    ) -> Job:
        body = None if payload is None else {"payload": _payload(payload)}
        return await self._connection.call("POST", f"{_job(id)}/retry", Job, body=body, version=version)

    async def arun_now(self, id: JobRef, *, version: str | None = None) -> Job:
        return await self._connection.call("POST", f"{_job(id)}/run", Job, version=version)

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
        given = {"priority": priority, "run_at": run_at, "delay": delay, "queue": queue}
        patch: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        fields = check_options(patch)
        if "delay" in fields:
            patch["delay"] = fields["delay"] / SECOND
        if payload is not None:
            patch["payload"] = _payload(payload)
        if not patch:
            raise InvalidOption("change", "nothing to change; there are priority, run_at, delay, payload, queue")
        return await self._connection.call("PATCH", _job(id), Job, body=patch, version=version)

    async def aearlier_payloads(self, id: JobRef) -> Sequence[EarlierPayload]:
        return (await self._connection.get(f"{_job(id)}/payloads", PayloadList)).payloads

    async def adelete(self, id: JobRef, *, version: str | None = None) -> None:
        await self._connection.call("DELETE", _job(id), type(None), query={"purge": True}, version=version)

    async def afind(self, part: str) -> str:
        if len(part) == LENGTH:
            return check_id(part)
        return (await self._connection.get("/jobs/find", FoundId, part=check_part(part))).id

    async def aretry_all(self, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        return await self._act("retry", job_filter(**wanted), all)

    async def acancel_all(self, reason: str = CANCELLED, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        return await self._act("cancel", job_filter(**wanted), all, reason=check_reason(reason))

    async def adelete_all(self, *, all: bool = False, **wanted: Unpack[JobFilters]) -> int:
        return await self._act("delete", job_filter(**wanted), all)

    async def _act(self, verb: ActionVerb, wanted: JobFilter, every: bool, **more: Any) -> int:
        """An action on the server, until it is done."""
        check_every(wanted, every)
        body = {"verb": verb, **_query(wanted), **more, "all": every}
        action = await self._connection.call("POST", "/actions", Action, body=body)
        while action.state in ("running", "stopping"):
            await asyncio.sleep(POLL_SECONDS)
            action = await self._connection.get(f"/actions/{action.id}", Action)
        return action.changed


def _job(id: JobRef) -> str:
    return f"/jobs/{job_id(id)}"


def _payload(payload: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(encode(dict(payload), "payload").encode())


def _query(wanted: JobFilter) -> dict[str, Any]:
    given = msgspec.structs.asdict(wanted)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}


class RemoteQueues(ThroughServer, Queues):
    """Queues behind a server."""

    async def alist(self) -> list[Queue]:
        return [_queue(each) for each in (await self._connection.get("/queues", QueueList)).queues]

    async def aadd(self, name: str) -> Queue:
        body = {"name": check_name(name, "queue")}
        return _queue(await self._connection.call("POST", "/queues", QueueRecord, body=body))

    async def aset(
        self, name: str, *, reset: Sequence[str] = (), version: str | None = None, **options: Unpack[QueueOptions]
    ) -> Queue:
        record = msgspec.structs.asdict(settings_record(checked_settings(reset, options)))
        body = {key: value for key, value in record.items() if value not in (None, {})}
        return await self._patch(name, {**body, "reset": list(reset)} if reset else body, version)

    async def areset(self, name: str, *names: str, version: str | None = None) -> Queue:
        return await self._patch(name, {"reset": list(names) or list(QueueOptions.__annotations__)}, version)

    async def apause(self, name: str, length: Duration | None = None, *, version: str | None = None) -> Queue:
        seconds = None if length is None else duration(length, "length") / SECOND
        return await self._post(name, "pause", version, {"seconds": seconds})

    async def aresume(self, name: str, *, version: str | None = None) -> Queue:
        return await self._post(name, "resume", version)

    async def aclose(self, name: str, *, version: str | None = None) -> Queue:
        return await self._post(name, "close", version)

    async def aopen(self, name: str, *, version: str | None = None) -> Queue:
        return await self._post(name, "open", version)

    async def apurge(self, name: str) -> int:
        return (await self._call("POST", name, "/purge", Purged)).cancelled

    async def _patch(self, name: str, body: Mapping[str, Any], version: str | None) -> Queue:
        return _queue(await self._call("PATCH", name, "", QueueRecord, body, version))

    async def _post(self, name: str, verb: str, version: str | None, body: Mapping[str, Any] | None = None) -> Queue:
        return _queue(await self._call("POST", name, f"/{verb}", QueueRecord, body, version))

    async def _call(
        self,
        method: str,
        name: str,
        verb: str,
        kind: type[T],
        body: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> T:
        """A call for one queue. One that this app names is made known to the server, if it is not."""
        path = f"/queues/{check_name(name, 'queue')}{verb}"
        try:
            return await self._connection.call(method, path, kind, body=body, version=version)
        except QueueNotFound:
            await self.aget(name)
            await self.aadd(name)
            return await self._connection.call(method, path, kind, body=body, version=version)


class RemoteWorkers(ThroughServer, Workers):
    """Workers behind a server."""

    async def alist(self) -> list[WorkerInfo]:
        return (await self._connection.get("/workers", WorkerList)).workers


class RemoteStats(ThroughServer, Stats):
    """Statistics behind a server."""

    async def acounts(self) -> Counts:
        return Counts((await self._connection.get("/stats", StatsRecord)).queues)

    async def arecent(
        self,
        length: Duration = 300,
        *,
        queue: str | None = None,
        type: TaskType | None = None,
        by: SumBy | None = None,
    ) -> Recent:
        seconds, name = check_recent(length, by) / SECOND, check_names(queue, type)
        query = {"recent": seconds, "recent_by": by, "queue": queue, "type": name}
        found = (await self._connection.get("/stats", StatsRecord, **query)).recent
        assert found is not None
        return found

    async def aoldest(self) -> dict[str, float]:
        return (await self._connection.get("/stats", StatsRecord)).oldest

    async def atimeline(
        self,
        length: Duration = 6 * 3600,
        *,
        by: By = "queue",
        step: Step | None = None,
        points: int | None = None,
        queue: str | None = None,
        type: TaskType | None = None,
        times: Times = "both",
    ) -> Timeline:
        name = None if type is None else type_name(type)
        asked = TimelineOptions(length=length, by=by, step=step, points=points, queue=queue, type=name, times=times)
        seconds, most = asked.check() / SECOND, points or MAX_POINTS
        query = {"since": seconds, "by": by, "step": step, "points": most, "queue": queue, "type": name}
        query["times"] = times
        found = (await self._connection.get("/stats", StatsRecord, **query)).timeline
        assert found is not None
        return found


class RemoteAudit(ThroughServer, Audit):
    """The audit behind a server; the token needs the scope `admin`."""

    async def alist(self, limit: int = 50, cursor: str | None = None) -> Page[AuditEntry]:
        check_limit(limit)
        page = await self._connection.get("/audit", AuditList, limit=limit, cursor=cursor)
        return Page(tuple(page.entries), page.next_cursor)


def _queue(record: QueueRecord) -> Queue:
    return Queue(
        name=record.name,
        paused=record.paused,
        paused_until=record.paused_until,
        closed=record.closed,
        declared=_settings(record.declared),
        changed=_settings(record.changed),
    )


def _settings(record: SettingsRecord) -> QueueSettings:
    return settings(
        **{name: value for name, value in msgspec.structs.asdict(record).items() if value not in (None, {})}
    )

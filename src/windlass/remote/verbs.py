"""The verbs of `app.jobs`, `app.queues`, `app.schedules`, `app.workers` and `app.stats`, through the server."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

import msgspec

from windlass.client.verbs.actions import Action, ActionVerb
from windlass.client.verbs.jobs import Jobs, check_limit, job_filter
from windlass.client.verbs.links import Links
from windlass.client.verbs.queues import Queues
from windlass.client.verbs.stats import Stats, Step, Workers
from windlass.core.flow.queue import Queue, QueueOptions, QueueSettings, settings
from windlass.core.ids import LENGTH, check_id, check_part
from windlass.core.jobs.job import Job
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import SECOND, duration
from windlass.core.names import check_name
from windlass.core.stats.meter import Recent
from windlass.core.stats.timeline import By, Timeline
from windlass.core.why.explain import Why
from windlass.errors import InvalidName, InvalidOption, JobNotFound
from windlass.remote.connection import Connection
from windlass.server.jobs import JobList
from windlass.server.queues import Purged, QueueList, QueueRecord, SettingsRecord
from windlass.server.stats import StatsRecord, WorkerList
from windlass.store.records import Counts, Page, WorkerInfo

POLL_SECONDS = 0.5
FIND_PAGE = 1_000


class RemoteJobs(Jobs):
    """Jobs behind a server."""

    def __init__(self, home: Any, connection: Connection) -> None:
        super().__init__(home)
        self._connection = connection

    async def aget(self, id: str, *, fetch: bool = True) -> Job:
        return await self._connection.get(f"/jobs/{check_id(id)}", Job)

    async def alist(
        self,
        *,
        status: str | Iterable[str] = (),
        type: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        tag: str | None = None,
        parent: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job]:
        check_limit(limit)
        wanted = {"type": type, "queue": queue, "tenant": tenant, "tag": tag, "parent": parent}
        job_filter(status=status, **wanted)
        statuses = [status] if isinstance(status, str) else list(status)
        page = await self._connection.get("/jobs", JobList, status=statuses, **wanted, limit=limit, cursor=cursor)
        return Page(tuple(page.jobs), page.next_cursor)

    async def alinks(self, id: str, *, limit: int = 100) -> Links:
        return await self._connection.get(f"/jobs/{check_id(id)}/links", Links)

    async def afailures(self, limit: int = 10) -> Sequence[Job]:
        return (await self.alist(status=("failed", "dead"), limit=limit)).items

    async def awhy(self, id: str) -> Why:
        return await self._connection.get(f"/jobs/{check_id(id)}/why", Why)

    async def acancel(self, id: str, reason: str = "cancelled by an operator") -> Job:
        return await self._connection.call("DELETE", f"/jobs/{check_id(id)}", Job, query={"reason": reason})

    async def aretry(self, id: str) -> Job:
        return await self._connection.call("POST", f"/jobs/{check_id(id)}/retry", Job)

    async def arun_now(self, id: str) -> Job:
        return await self._connection.call("POST", f"/jobs/{check_id(id)}/run", Job)

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
        seconds = None if delay is None else duration(delay, "delay") / SECOND
        given = {"priority": priority, "run_at": run_at, "delay": seconds, "payload": payload, "queue": queue}
        patch = {name: value for name, value in given.items() if value is not None}
        if not patch:
            raise InvalidOption("change", f"nothing to change; there are {', '.join(given)}")
        return await self._connection.call("PATCH", f"/jobs/{check_id(id)}", Job, body=patch)

    async def adelete(self, id: str) -> None:
        await self._connection.call("DELETE", f"/jobs/{check_id(id)}", type(None), query={"purge": True})

    async def afind(self, part: str) -> str:
        """The id with this beginning or end, among the newest thousand jobs."""
        if len(part) == LENGTH:
            return check_id(part)
        text = check_part(part)
        page = await self.alist(limit=FIND_PAGE)
        found = [job.id for job in page.items if job.id.startswith(text) or job.id.endswith(text)]
        if not found:
            raise JobNotFound(f"{text}… (looked for among the newest jobs only)")
        if len(found) > 1:
            raise InvalidName("id", f"{len(found)} jobs have an id with {text!r}; give more of it")
        return found[0]

    async def aretry_all(self, /, **wanted: Any) -> int:
        return await self._act("retry", wanted)

    async def acancel_all(self, /, reason: str = "cancelled by an operator", **wanted: Any) -> int:
        return await self._act("cancel", wanted, reason=reason)

    async def adelete_all(self, /, **wanted: Any) -> int:
        return await self._act("delete", wanted)

    async def _act(self, verb: ActionVerb, wanted: Mapping[str, Any], **more: Any) -> int:
        """An action on the server, until it is done."""
        job_filter(**wanted)
        given = {name: value for name, value in wanted.items() if value}
        if isinstance(given.get("status"), str):
            given["status"] = [given["status"]]
        body = {"verb": verb, **given, **more, "all": not given}
        action = await self._connection.call("POST", "/actions", Action, body=body)
        while action.state in ("running", "stopping"):
            await asyncio.sleep(POLL_SECONDS)
            action = await self._connection.get(f"/actions/{action.id}", Action)
        return action.changed


class RemoteQueues(Queues):
    """Queues behind a server."""

    def __init__(self, home: Any, connection: Connection) -> None:
        super().__init__(home)
        self._connection = connection

    async def alist(self) -> list[Queue]:
        return [_queue(each) for each in (await self._connection.get("/queues", QueueList)).queues]

    async def aset(self, name: str, **options: Unpack[QueueOptions]) -> Queue:
        settings(**options)
        return await self._patch(name, {key: value for key, value in options.items() if value is not None})

    async def areset(self, name: str, *names: str) -> Queue:
        return await self._patch(name, {"reset": list(names) or list(QueueOptions.__annotations__)})

    async def apause(self, name: str, length: float | timedelta | None = None) -> Queue:
        seconds = None if length is None else duration(length, "length") / SECOND
        return await self._post(name, "pause", {"seconds": seconds})

    async def aresume(self, name: str) -> Queue:
        return await self._post(name, "resume")

    async def aclose(self, name: str) -> Queue:
        return await self._post(name, "close")

    async def aopen(self, name: str) -> Queue:
        return await self._post(name, "open")

    async def apurge(self, name: str) -> int:
        return (await self._connection.call("POST", f"{_path(name)}/purge", Purged)).cancelled

    async def _patch(self, name: str, body: Mapping[str, Any]) -> Queue:
        return _queue(await self._connection.call("PATCH", _path(name), QueueRecord, body=body))

    async def _post(self, name: str, verb: str, body: Mapping[str, Any] | None = None) -> Queue:
        return _queue(await self._connection.call("POST", f"{_path(name)}/{verb}", QueueRecord, body=body))


class RemoteWorkers(Workers):
    """Workers behind a server."""

    def __init__(self, home: Any, connection: Connection) -> None:
        super().__init__(home)
        self._connection = connection

    async def alist(self) -> list[WorkerInfo]:
        return (await self._connection.get("/workers", WorkerList)).workers


class RemoteStats(Stats):
    """Statistics behind a server."""

    def __init__(self, home: Any, connection: Connection) -> None:
        super().__init__(home)
        self._connection = connection

    async def acounts(self) -> Counts:
        return Counts((await self._connection.get("/stats", StatsRecord)).queues)

    async def arecent(self, length: float | timedelta = 300) -> Recent:
        seconds = duration(length, "length") / SECOND
        found = (await self._connection.get("/stats", StatsRecord, recent=seconds)).recent
        assert found is not None
        return found

    async def aoldest(self) -> dict[str, float]:
        return (await self._connection.get("/stats", StatsRecord)).oldest

    async def atimeline(
        self,
        length: float | timedelta = 6 * 3600,
        *,
        by: By = "queue",
        step: Step | None = None,
        points: int | None = None,
        queue: str | None = None,
        type: str | None = None,
    ) -> Timeline:
        seconds = duration(length, "length") / SECOND
        query = {"since": seconds, "by": by, "points": points or 10_080, "queue": queue, "type": type}
        found = (await self._connection.get("/stats", StatsRecord, **query)).timeline
        assert found is not None
        return found


def _path(name: str) -> str:
    return f"/queues/{check_name(name, 'queue')}"


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
    given = {name: value for name, value in msgspec.structs.asdict(record).items() if value not in (None, {})}
    if "retry" in given:
        given["retry"] = msgspec.convert(given["retry"], StoredPolicy)
    return settings(**given)

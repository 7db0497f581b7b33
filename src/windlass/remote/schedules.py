"""The verbs of `app.schedules`, through the server."""

from collections.abc import Sequence
from typing import Any, Unpack

from msgspec import UNSET

from windlass.client.handle import Handle
from windlass.client.tasks.options import check_options, job_fields
from windlass.client.verbs.schedules import Schedules, nothing_to_change
from windlass.core.codec import encode
from windlass.core.jobs.job import DEFAULT_QUEUE, NewJob
from windlass.core.names import check_name
from windlass.core.schedules.schedule import Schedule, ScheduleOptions, ScheduleSettings, settings
from windlass.errors import InvalidOption
from windlass.remote.connection import ThroughServer
from windlass.remote.enqueue import template
from windlass.server.api.enqueue import JobReceipt
from windlass.server.api.job_options import OPTIONS
from windlass.server.api.schedule_records import ScheduleList, ScheduleRecord, ScheduleSettingsRecord


class RemoteSchedules(ThroughServer, Schedules):
    """Schedules behind a server."""

    async def aget(self, name: str) -> Schedule:
        return _schedule(await self._connection.get(_path(name), ScheduleRecord))

    async def alist(self) -> list[Schedule]:
        return [_schedule(each) for each in (await self._connection.get("/schedules", ScheduleList)).schedules]

    async def aadd(self, name: str, job: NewJob, /, **options: Unpack[ScheduleOptions]) -> Schedule:
        said = self._settings(job, options)
        body = {"name": check_name(name, "schedule"), **_template(said), **_given(options)}
        return _schedule(await self._connection.call("POST", "/schedules", ScheduleRecord, body=body))

    async def aset(
        self,
        name: str,
        job: NewJob | None = None,
        /,
        *,
        reset: Sequence[str] = (),
        paused: bool | None = None,
        version: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        said = self._settings(job, options)
        if said == ScheduleSettings() and not reset and paused is None:
            raise nothing_to_change()
        given = {"reset": list(reset) or None, "paused": paused, **options}
        return await self._patch(name, {**_template(said), **_given(given)}, version)

    async def areset(self, name: str, *names: str, version: str | None = None) -> Schedule:
        return await self._patch(name, {"reset": list(names) or list(ScheduleSettings.__struct_fields__)}, version)

    async def apause(self, name: str, *, version: str | None = None) -> Schedule:
        return await self._patch(name, {"paused": True}, version)

    async def aresume(self, name: str, *, version: str | None = None) -> Schedule:
        return await self._patch(name, {"paused": False}, version)

    async def arun(self, name: str, *, version: str | None = None) -> Handle[Any]:
        receipt = await self._connection.call("POST", f"{_path(name)}/run", JobReceipt, version=version)
        return self._home._handle(receipt.id, receipt.existing, Any)

    async def aremove(self, name: str, *, version: str | None = None) -> None:
        await self._connection.call("DELETE", _path(name), type(None), version=version)

    async def _patch(self, name: str, body: dict[str, Any], version: str | None) -> Schedule:
        return _schedule(
            await self._connection.call("PATCH", _path(name), ScheduleRecord, body=body, version=version)
        )


def _path(name: str) -> str:
    return f"/schedules/{check_name(name, 'schedule')}"


def _template(said: ScheduleSettings) -> dict[str, Any]:
    """The job of a schedule, with all its options."""
    if said.job is None:
        return {}
    if said.job.flow is not None:
        raise InvalidOption("flow", "cannot be given through a server")
    return template(said.job)


def _given(options: Any) -> dict[str, Any]:
    lengths = {name: value.total_seconds() for name, value in options.items() if hasattr(value, "total_seconds")}
    return {name: value for name, value in {**options, **lengths}.items() if value is not None}


def _schedule(record: ScheduleRecord) -> Schedule:
    return Schedule(
        name=record.name,
        declared=_settings(record.declared),
        changed=_settings(record.changed),
        paused=record.paused,
        created_at=record.created_at,
        last_at=record.last_at,
        next_at=record.next_at,
        last_job=record.last_job,
        missed=record.missed,
        skipped=record.skipped,
        revision=record.revision,
    )


def _settings(record: ScheduleSettingsRecord) -> ScheduleSettings:
    """Settings of a record; without the scope `payloads` the payload is empty."""
    given = {name: getattr(record, name) for name in ScheduleOptions.__annotations__}
    if given["every"] is not None:
        given["tz"] = None
    return settings(_job(record), **given)


def _job(record: ScheduleSettingsRecord) -> NewJob | None:
    if record.type is None:
        return None
    options = {name: value for name in OPTIONS if (value := getattr(record, name)) is not UNSET}
    fields = job_fields(check_options({**options, "queue": record.queue or DEFAULT_QUEUE}))
    return NewJob(id="", type=record.type, payload=encode(record.payload or {}, "payload"), **fields)

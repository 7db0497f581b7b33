"""app.schedules: verbs on schedules, each also with the prefix `a`."""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from windlass.client.handle import Handle
from windlass.client.runtime.portal import blocking
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.joint import refuse_connection
from windlass.client.verbs.group import Verbs
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.core.names import check_name
from windlass.core.schedules.firing import manual_job
from windlass.core.schedules.schedule import Schedule, ScheduleOptions, ScheduleSettings, amended, settings, without
from windlass.core.suggest import suggest
from windlass.errors import InvalidOption, ScheduleNotFound
from windlass.store.schedules import ScheduleStore


class Schedules(Verbs):
    """Read schedules, add, change, pause, run and remove them.

    Changes are kept in the store and override what the code declares. Verbs that take a `version` raise
    ChangedSince if the schedule has another one by then, and change nothing.
    """

    async def aget(self, name: str) -> Schedule:
        """One schedule: its `declared` settings, what an operator `changed`, the effective `rules`, and its ticks."""
        return await self._found(name, (await (await self._ready()).get([check_name(name, "schedule")]))[0])

    async def aadd(self, name: str, job: NewJob, /, **options: Unpack[ScheduleOptions]) -> Schedule:
        """A new schedule: `add("daily", report.job(), cron="0 9 * * 1-5", tz="Europe/Berlin")`."""
        said = self._settings(job, options)
        added = await (await self._ready()).add(check_name(name, "schedule"), said)
        if added is None:
            raise InvalidOption("name", f"there is a schedule {name!r} already; change it with set")
        await self._audit("schedule.add", name, after=_times(added))
        return added

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
        """Change a schedule; this overrides what the code declares. Other settings stay.

        With other times it starts anew; ticks that were due by the old ones are dropped. `reset` undoes changes by
        name first; `paused` pauses or resumes it in the same step.
        """
        said = self._settings(job, options)
        if said == ScheduleSettings() and not reset and paused is None:
            raise nothing_to_change()
        if reset:
            await self._check_declared(name)
        return await self._amend(
            name, lambda before: amended(without(before, reset) if reset else before, said), version, paused
        )

    async def areset(self, name: str, *names: str, version: str | None = None) -> Schedule:
        """Undo an operator's changes, or only those of the named settings."""
        await self._check_declared(name)
        return await self._amend(name, lambda before: without(before, names), version)

    def _settings(self, job: NewJob | None, options: ScheduleOptions) -> ScheduleSettings:
        """The given settings, checked; the job gets the trace of this call."""
        refuse_connection(job)
        traced = self._home._with_creation(job) if isinstance(job, NewJob) else job
        return settings(traced, **options)

    async def _check_declared(self, name: str) -> None:
        if (await self.aget(name)).declared == ScheduleSettings():
            raise InvalidOption(
                "reset", f"no code declares {name!r}, so there is nothing to reset to; use set, or remove"
            )

    async def apause(self, name: str, *, version: str | None = None) -> Schedule:
        """Enqueue nothing until it is resumed."""
        before = await self.aget(name)
        found = await self._found(name, await (await self._ready()).pause(check_name(name, "schedule"), version))
        await self._audit("schedule.pause", name, before=_times(before), after=_times(found))
        return found

    async def aresume(self, name: str, *, version: str | None = None) -> Schedule:
        """Continue with the next tick; those that passed meanwhile are not made up."""
        before = await self.aget(name)
        found = await self._found(name, await (await self._ready()).resume(check_name(name, "schedule"), version))
        await self._audit("schedule.resume", name, before=_times(before), after=_times(found))
        return found

    async def arun(self, name: str, *, version: str | None = None) -> Handle[Any]:
        """Enqueue its job now, paused or not; its ticks are not affected.

        With `overlap=False` the answer is the job before it, if that has not ended.
        """
        schedule = await self.aget(name)
        schedule.check(version)
        job = manual_job(schedule, new_id(), this_process())
        handle = (await self._home._enqueue_jobs([job], [self._home._returns(job.type)]))[0]
        await self._audit("schedule.run", name, after={"job": handle.id})
        return handle

    async def aremove(self, name: str, *, version: str | None = None) -> None:
        """Remove it; its jobs stay. A declared one returns with the next process of that code."""
        before = await self.aget(name)
        if not await (await self._ready()).remove(check_name(name, "schedule"), version):
            raise await self._unknown(name)
        await self._audit("schedule.remove", name, before=_times(before))

    async def alist(self) -> list[Schedule]:
        """All schedules, by name."""
        return await (await self._ready()).list()

    async def aundeclared(self) -> list[Schedule]:
        """Schedules that code declared and this app does not: they go on until they are removed.

        Those of another app on the same store are left out: a live worker knows their type, and this app does not.
        """
        store = await self._home._ready()
        ours, declared = {*self._home.registry.types}, self._home._declared.schedules
        found = [
            (each, each.declared.job.type)
            for each in await store.schedules.list()
            if each.declared.job is not None and each.name not in declared
        ]
        elsewhere = {type_ for worker in await store.workers.list() for type_ in worker.types} if found else set()
        return [each for each, type_ in found if type_ in ours or type_ not in elsewhere]

    async def _ready(self) -> ScheduleStore:
        return (await self._home._ready()).schedules

    async def _found(self, name: str, schedule: Schedule | None) -> Schedule:
        if schedule is None:
            raise await self._unknown(name)
        return schedule

    async def _unknown(self, name: str) -> ScheduleNotFound:
        return ScheduleNotFound(name, suggest(name, [each.name for each in await self.alist()]))

    async def _amend(
        self,
        name: str,
        amend: Callable[[ScheduleSettings], ScheduleSettings],
        version: str | None,
        pause: bool | None = None,
    ) -> Schedule:
        """Compare-and-set on the operator's settings, repeated after a concurrent change."""
        while True:
            before = await self.aget(name)
            changed = amend(before.changed)
            store = await self._ready()
            found = await self._found(name, await store.change(name, changed, before.changed, version, pause))
            if found.changed == changed:
                await self._audit("schedule.change", name, before=_times(before), after=_times(found))
                return found

    get = blocking(aget)
    add = blocking(aadd)
    set = blocking(aset)
    reset = blocking(areset)
    pause = blocking(apause)
    resume = blocking(aresume)
    run = blocking(arun)
    remove = blocking(aremove)
    undeclared = blocking(aundeclared)
    list = blocking(alist)


def nothing_to_change() -> InvalidOption:
    """The error for a `set` without settings."""
    return InvalidOption("set", f"nothing to change; there are job, {', '.join(ScheduleOptions.__annotations__)}")


def _times(schedule: Schedule) -> dict[str, Any]:
    """The times of a schedule, for the audit."""
    return {"times": schedule.problem or schedule.in_words, "paused": schedule.paused}

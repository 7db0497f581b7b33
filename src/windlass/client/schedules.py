"""app.schedules: what people and programs do with schedules, each verb also with an `a`."""

from collections.abc import Callable
from typing import Any, Unpack

from windlass.client.blocking import blocking
from windlass.client.handle import Handle
from windlass.client.here import this_process
from windlass.client.verbs import Verbs
from windlass.core.firing import job_now
from windlass.core.ids import new_id
from windlass.core.job import NewJob
from windlass.core.names import check_name
from windlass.core.schedule import Schedule, ScheduleOptions, ScheduleSettings, amended, settings, without
from windlass.errors import InvalidOption, ScheduleNotFound
from windlass.store.schedules import ScheduleStore


class Schedules(Verbs):
    """Look at schedules, make and change them, pause, run and remove them.

    Whatever is changed here is kept in the store, and holds from then on. It stands beside what the code declares,
    and wins.
    """

    async def aget(self, name: str) -> Schedule:
        """One schedule: what is `declared`, what an operator `changed`, the `rules` that hold, and its ticks."""
        return _found(name, (await (await self._ready()).get([check_name(name, "schedule")]))[0])

    async def aadd(self, name: str, job: NewJob, /, **options: Unpack[ScheduleOptions]) -> Schedule:
        """A new schedule: `add("daily", report.job(), cron="0 9 * * 1-5", tz="Europe/Berlin")`."""
        added = await (await self._ready()).add(check_name(name, "schedule"), settings(job, **options))
        if added is None:
            raise InvalidOption("name", f"there is a schedule {name!r} already; change it with set")
        return added

    async def aset(self, name: str, job: NewJob | None = None, /, **options: Unpack[ScheduleOptions]) -> Schedule:
        """Change a schedule; that wins over what the code declares. What is not named stays as it is.

        With other times it begins anew; what was due by the old ones is dropped.
        """
        said = settings(job, **options)
        if said == ScheduleSettings():
            raise InvalidOption(
                "set", f"nothing to change; there are job, {', '.join(ScheduleOptions.__annotations__)}"
            )
        return await self._amend(name, lambda before: amended(before, said))

    async def areset(self, name: str, *names: str) -> Schedule:
        """Undo an operator's changes, or only those of the named settings: what the code declares holds again."""
        if (await self.aget(name)).declared == ScheduleSettings():
            raise InvalidOption("reset", f"no code declares {name!r}, so nothing is left to hold; use set, or remove")
        return await self._amend(name, lambda before: without(before, names))

    async def apause(self, name: str) -> Schedule:
        """Let it hand nothing in until it is resumed."""
        return _found(name, await (await self._ready()).pause(check_name(name, "schedule")))

    async def aresume(self, name: str) -> Schedule:
        """Let it go on with its next tick; those that passed meanwhile are not made up."""
        return _found(name, await (await self._ready()).resume(check_name(name, "schedule")))

    async def arun(self, name: str) -> Handle[Any]:
        """Hand its job in now, paused or not; its ticks stay as they are.

        With `overlap=False` the answer is the job before it, if that has not ended.
        """
        job = job_now(await self.aget(name), new_id(), this_process())
        return (await self._home._hand_in([job], [self._home._returns(job.type)]))[0]

    async def aremove(self, name: str) -> None:
        """Drop it; its jobs stay. One that the code declares comes back with the next process of that code."""
        if not await (await self._ready()).remove(check_name(name, "schedule")):
            raise ScheduleNotFound(name)

    async def alist(self) -> list[Schedule]:
        """All of them, by name."""
        return await (await self._ready()).list()

    async def _ready(self) -> ScheduleStore:
        return (await self._home._ready()).schedules

    async def _amend(self, name: str, amend: Callable[[ScheduleSettings], ScheduleSettings]) -> Schedule:
        """From what is changed already, again if somebody else was quicker."""
        while True:
            before = await self.aget(name)
            changed = amend(before.changed)
            found = _found(name, await (await self._ready()).change(name, changed, before.changed))
            if found.changed == changed:
                return found

    get = blocking(aget)
    add = blocking(aadd)
    set = blocking(aset)
    reset = blocking(areset)
    pause = blocking(apause)
    resume = blocking(aresume)
    run = blocking(arun)
    remove = blocking(aremove)
    list = blocking(alist)


def _found(name: str, schedule: Schedule | None) -> Schedule:
    if schedule is None:
        raise ScheduleNotFound(name)
    return schedule

"""fire: ticks that have come get their jobs, and their schedules go on to the next ones.

It costs bounded work in each turn, however many schedules there are and however long no coordinator ran. What two
coordinators decide at once is done by one of them.
"""

import time
from collections.abc import Sequence

from windlass.core.events import Emit, ScheduleBroken, TicksFired, TicksMissed, TicksSkipped
from windlass.core.moments import SECOND, Micros
from windlass.core.schedules.firing import Fired, Firing, firing
from windlass.core.schedules.schedule import Schedule
from windlass.store.contract import Store

MAX_SCHEDULES = 500
MAX_JOBS = 1000
"""Of ticks that are made up for, in one turn; a single schedule may have as many more."""
MAX_NAMED = 10
BUDGET_SECONDS = 0.05
"""For decisions, in one turn: the same event loop renews leases, which must not be late."""
MAX_PAUSE = 1.0
REPEAT_SECONDS = 60.0
"""A schedule that cannot be read is skipped for this long."""


class Fire:
    """The duty; it remembers schedules that cannot be read, so that they do not block others."""

    def __init__(self, store: Store, emit: Emit) -> None:
        self._schedules = store.schedules
        self._emit = emit
        self._broken: dict[str, float] = {}
        """Until when each is passed over, by the monotonic clock."""

    async def run(self) -> float:
        """One turn; the seconds until the next."""
        found = await self._schedules.due(MAX_SCHEDULES + len(self._broken))
        wanted = self._decide(found.schedules, found.now)
        if wanted:
            self._emit_fired(wanted, await self._schedules.fire(wanted), found.now)
            return 0.0
        return MAX_PAUSE if found.next_in is None else max(0.0, min(MAX_PAUSE, found.next_in / SECOND))

    def _decide(self, schedules: Sequence[Schedule], now: Micros) -> list[Firing]:
        begin, jobs, wanted = time.monotonic(), 0, []
        for schedule in schedules:
            if self._broken.get(schedule.name, 0.0) > begin:
                continue
            try:
                wanted.append(firing(schedule, now))
            except Exception as error:
                # Whatever is wrong with one, such as a zone that is not known here, the others go on.
                self._broken[schedule.name] = begin + REPEAT_SECONDS
                self._emit(ScheduleBroken(schedule=schedule.name, problem=f"{type(error).__name__}: {error}"))
                continue
            self._broken.pop(schedule.name, None)
            jobs += len(wanted[-1].jobs)
            if jobs >= MAX_JOBS or time.monotonic() - begin > BUDGET_SECONDS:
                break
        return wanted

    def _emit_fired(self, wanted: Sequence[Firing], fired: Sequence[Fired], now: Micros) -> None:
        done = [(each, answer) for each, answer in zip(wanted, fired, strict=True) if answer.done]
        enqueued = [each for each, answer in done if answer.jobs]
        if enqueued:
            oldest = min(job.tick for each in enqueued for job in each.jobs if job.tick is not None)
            jobs = sum(len(answer.jobs) for _, answer in done)
            self._emit(TicksFired(schedules=len(enqueued), jobs=jobs, late=(now - oldest) / SECOND))
        if missed := {each.name: each.missed for each, _ in done if each.missed}:
            self._emit(TicksMissed(schedules=_some(missed), ticks=sum(missed.values())))
        if skipped := {each.name: answer.skipped for each, answer in done if answer.skipped}:
            self._emit(TicksSkipped(schedules=_some(skipped), ticks=sum(skipped.values())))


def _some(names: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(names)[:MAX_NAMED])

"""The contract's role for schedules, and schedules in rows: settings as JSON, times as numbers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from windlass.core.moments import Micros, to_datetime, to_micros
from windlass.core.schedules.firing import Fired, Firing
from windlass.core.schedules.schedule import Schedule, ScheduleSettings

_settings = msgspec.json.Decoder(ScheduleSettings)


class DueSchedules(msgspec.Struct, frozen=True):
    """Due schedules as of `now`, the longest overdue first."""

    now: Micros
    schedules: tuple[Schedule, ...]
    next_in: Micros | None
    """Until the next one is due, if none is; None: unknown."""


class ScheduleStore(Protocol):
    """Schedules.

    Verbs raise InvalidOption for incomplete settings, and those that take a `version` raise ChangedSince if the
    schedule has another one; then nothing is written.
    """

    async def declare(self, schedules: dict[str, ScheduleSettings]) -> None:
        """Write the declared settings; an operator's changes stay and win. Unchanged schedules are not touched."""

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        """Add a schedule made by an operator; None if the name is taken."""

    async def change(
        self,
        name: str,
        changed: ScheduleSettings,
        was: ScheduleSettings,
        version: str | None = None,
        pause: bool | None = None,
    ) -> Schedule | None:
        """Replace the operator's settings if they are still `was`; returns the schedule now.

        With `pause` it is paused or resumed in the same step. None: unknown name.
        """

    async def pause(self, name: str, version: str | None = None) -> Schedule | None:
        """Stop firing; None if there is no such schedule."""

    async def resume(self, name: str, version: str | None = None) -> Schedule | None:
        """Continue with the first tick after now."""

    async def remove(self, name: str, version: str | None = None) -> bool:
        """Remove it; its jobs stay. Returns whether there was one."""

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        """Schedules by their names."""

    async def due(self, limit: int) -> DueSchedules:
        """Due schedules; the cost does not depend on the number of schedules."""

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Enqueue the jobs of ticks and move on to the next ones: each schedule completely or not at all.

        A schedule that is no longer at `was_next`, or was changed since, is left unchanged and nothing is enqueued
        for it. A job whose key is taken, or whose queue is closed, is skipped and counted.
        """

    async def list(self) -> list[Schedule]:
        """All schedules, by name."""


def to_schedule(row: Sequence[Any]) -> Schedule:
    """A row with the fields of a Schedule, in the order of `set_schedule`."""
    name, declared, changed, paused, created, last, next_, last_job, missed, skipped, revision = row
    return Schedule(
        name=name,
        declared=_readable(declared),
        changed=_readable(changed),
        paused=bool(paused),
        created_at=to_datetime(created),
        last_at=None if last is None else to_datetime(last),
        next_at=None if next_ is None else to_datetime(next_),
        last_job=last_job,
        missed=missed,
        skipped=skipped,
        revision=revision,
    )


def _readable(text: str) -> ScheduleSettings:
    """The settings; unreadable ones count as none, so that only their own schedule is broken."""
    try:
        return _settings.decode(text)
    except msgspec.MsgspecError:
        return ScheduleSettings()


def schedule_values(record: Schedule, columns: Sequence[str] = Schedule.__struct_fields__) -> dict[str, Any]:
    """A schedule's values by column: all, or some."""
    return {name: _value(getattr(record, name)) for name in columns}


def _value(field: Any) -> Any:
    if isinstance(field, datetime):
        return to_micros(field)
    return msgspec.json.encode(field).decode() if isinstance(field, ScheduleSettings) else field

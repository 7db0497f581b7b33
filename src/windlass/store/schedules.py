"""The contract's role for schedules, and schedules as they are kept: settings as JSON, moments as numbers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from windlass.core.firing import Fired, Firing
from windlass.core.moments import Micros, to_datetime, to_micros
from windlass.core.schedule import Schedule, ScheduleSettings

_settings = msgspec.json.Decoder(ScheduleSettings)


class DueSchedules(msgspec.Struct, frozen=True):
    """Schedules of which a tick has come, as of `now`, the longest overdue first."""

    now: Micros
    schedules: tuple[Schedule, ...]
    next_in: Micros | None
    """When the next one comes, if none is due; None: nobody knows of any."""


class ScheduleStore(Protocol):
    """Schedules: what is handed in again and again.

    Whoever writes settings that hold nothing gets InvalidOption, and nothing is written.
    """

    async def declare(self, schedules: dict[str, ScheduleSettings]) -> None:
        """Write what the code says; an operator's change stays and wins. What is as it was stays as it is."""

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        """A new one, made by an operator; None if there is one of this name."""

    async def change(self, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
        """Replace the operator's change if it is what it `was`: the answer tells; None: there is no such."""

    async def pause(self, name: str) -> Schedule | None:
        """Let it hand nothing in; None if there is no such schedule."""

    async def resume(self, name: str) -> Schedule | None:
        """Let it go on with the first tick after now."""

    async def remove(self, name: str) -> bool:
        """Drop it; its jobs stay. Whether there was one."""

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        """Schedules by their names."""

    async def due(self, limit: int) -> DueSchedules:
        """Those that have something to do now; cheap however many there are."""

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Hand in the jobs of ticks and go on to the next ones: each schedule wholly or not at all.

        One that is no longer at `was_next`, or was changed since, stays as it is and nothing is handed in for it.
        A job that would meet another one's key, or a closed queue, is skipped and counted.
        """

    async def list(self) -> list[Schedule]:
        """All of them, by name."""


def to_schedule(row: Sequence[Any]) -> Schedule:
    """A row with the fields of a Schedule by their names, in the order of `set_schedule`."""
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
    """What somebody edited by hand into something else says nothing: the schedule is broken, the others are not."""
    try:
        return _settings.decode(text)
    except msgspec.MsgspecError:
        return ScheduleSettings()


def schedule_values(record: Schedule, columns: Sequence[str] = Schedule.__struct_fields__) -> dict[str, Any]:
    """What is written of a schedule, by column: all of it, or some."""
    return {name: _value(getattr(record, name)) for name in columns}


def _value(field: Any) -> Any:
    if isinstance(field, datetime):
        return to_micros(field)
    return msgspec.json.encode(field).decode() if isinstance(field, ScheduleSettings) else field

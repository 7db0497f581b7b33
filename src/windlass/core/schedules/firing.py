"""Firing: what happens to a schedule when it is written, paused or due. Decided here, applied by a store.

A tick is fired once: one call enqueues its jobs and moves the schedule to the next tick. The call does nothing if the
tick was fired before (`was_next`) or the schedule was changed (`revision`). The next tick is always after the last
one fired, also if the clock is set back.

A store that cannot write jobs and schedules by one call writes the plan first; any process may finish it. A plan and
its schedule always make the same jobs.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import NewJob
from windlass.core.moments import Micros, to_datetime, to_micros
from windlass.core.schedules.schedule import Schedule, ScheduleRules, ScheduleSettings, merge
from windlass.core.schedules.ticks import due, jittered, tick_id
from windlass.errors import WindlassError


class Plan(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A decision about a schedule at a moment, from which the firing can be made again."""

    now: Micros
    ticks: tuple[Micros, ...]
    next: Micros | None
    missed: int


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """The action on a schedule: enqueue jobs, and move to the next tick."""

    name: str
    created_at: Micros
    """The creation time of the schedule; a new one of the same name has another."""
    revision: int
    was_next: Micros
    now: Micros
    """When this was decided."""
    jobs: tuple[NewJob, ...] = ()
    """The jobs of its ticks, in order."""
    next: Micros | None
    missed: int = 0

    @property
    def plan(self) -> Plan:
        """The plan from which `firing_of` makes this firing again."""
        ticks = tuple(job.tick for job in self.jobs if job.tick is not None)
        return Plan(now=self.now, ticks=ticks, next=self.next, missed=self.missed)


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a firing."""

    done: bool
    """False: the schedule has changed since, and nothing was done."""
    jobs: tuple[JobId, ...] = ()
    """The jobs that were enqueued."""
    skipped: int = 0


def overlap_key(name: str) -> str:
    """The idempotency key of the jobs of a schedule with `overlap=False`."""
    return f"schedule:{name}"


def firing(schedule: Schedule, now: Micros) -> Firing:
    """The firing that is due for a schedule at a moment."""
    assert schedule.next_at is not None
    rules, pending = schedule.rules, to_micros(schedule.next_at)
    found = due(rules.timetable(to_micros(schedule.created_at)), pending, now, rules.catch_up)
    return _planned(schedule, rules, Plan(now=now, ticks=found.ticks, next=found.next, missed=found.missed))


def firing_of(schedule: Schedule, plan: Plan) -> Firing:
    """The firing that a plan of this schedule describes."""
    return _planned(schedule, schedule.rules, plan)


def _planned(schedule: Schedule, rules: ScheduleRules, plan: Plan) -> Firing:
    assert schedule.next_at is not None
    return Firing(
        name=schedule.name,
        created_at=to_micros(schedule.created_at),
        revision=schedule.revision,
        was_next=to_micros(schedule.next_at),
        now=plan.now,
        jobs=tuple(_job(schedule.name, rules, tick, plan.now) for tick in plan.ticks),
        next=plan.next,
        missed=plan.missed,
    )


def manual_job(schedule: Schedule, id_: JobId, fresh: str) -> NewJob:
    """A job of a schedule that is run at once, for no tick."""
    return _of(schedule.name, schedule.rules, id=id_, fresh=fresh)


def _job(name: str, rules: ScheduleRules, tick: Micros, now: Micros) -> NewJob:
    """The job of a tick."""
    job = _of(name, rules, id=tick_id(name, tick), tick=tick, run_at=jittered(name, tick, rules.jitter))
    if job.expires is None or job.run_at is None:
        return job
    # Its expiry counts from when it is due, also if it is late or has jitter.
    return msgspec.structs.replace(job, expires=None, expires_at=max(now, job.run_at) + job.expires)


def _of(name: str, rules: ScheduleRules, **fields: object) -> NewJob:
    key = None if rules.overlap else overlap_key(name)
    own = {"schedule": name, "idempotency_key": key, "idempotency_window": None, "on_conflict": OnConflict.EXISTING}
    return msgspec.structs.replace(rules.job, **own, **fields)


def still_valid(found: Mapping[str, Schedule], firings: Sequence[Firing]) -> dict[str, Firing]:
    """The firings that may be applied, by name: those whose schedule has not changed since the decision."""
    valid: dict[str, Firing] = {}
    for each in firings:
        if each.name not in valid and _is_current(found.get(each.name), each):
            valid[each.name] = each
    return valid


def _is_current(schedule: Schedule | None, wanted: Firing) -> bool:
    if schedule is None or schedule.paused or schedule.next_at is None or schedule.revision != wanted.revision:
        return False
    return (to_micros(schedule.created_at), to_micros(schedule.next_at)) == (wanted.created_at, wanted.was_next)


def fired(wanted: Firing, stored: Collection[JobId]) -> Fired:
    """The result of an applied firing; a job that is not in `stored` conflicted with another job's key."""
    ours = tuple(job.id for job in wanted.jobs if job.id in stored)
    return Fired(done=True, jobs=ours, skipped=len(wanted.jobs) - len(ours))


def after_firing(schedule: Schedule, fired: Firing, done: Fired) -> Schedule:
    ticks = [job.tick for job in fired.jobs if job.tick is not None]
    return msgspec.structs.replace(
        schedule,
        next_at=None if fired.next is None else to_datetime(fired.next),
        last_at=to_datetime(max(ticks)) if ticks else schedule.last_at,
        last_job=done.jobs[-1] if done.jobs else schedule.last_job,
        missed=schedule.missed + fired.missed,
        skipped=schedule.skipped + done.skipped,
    )


def new_schedule(name: str, now: Micros, *, declared: ScheduleSettings, changed: ScheduleSettings) -> Schedule:
    """A new schedule: its first tick is the first after now."""
    bare = Schedule(name=name, created_at=to_datetime(now), declared=declared, changed=changed)
    return _replanned(bare, now)


def reconfigured(before: Schedule, now: Micros, declared: ScheduleSettings, changed: ScheduleSettings) -> Schedule:
    """The schedule with other settings. With the same times, a due tick stays due; else the next one is after now."""
    after = msgspec.structs.replace(before, declared=declared, changed=changed, revision=before.revision + 1)
    merge(declared, changed)  # refuses incomplete settings
    return after if _times(before) == _times(after) else _replanned(after, now)


def changed_by(
    before: Schedule, now: Micros, changed: ScheduleSettings, was: ScheduleSettings, pause: bool | None
) -> Schedule:
    """The schedule after an operator's change, with `pause` also paused or resumed; unchanged if it is not `was`."""
    if before.changed != was:
        return before
    if pause is None:
        return reconfigured(before, now, before.declared, changed)
    after = before if changed == was else reconfigured(before, now, before.declared, changed)
    return paused(after) if pause else resumed(after, now)


def paused(before: Schedule) -> Schedule:
    """The schedule, paused."""
    return before if before.paused else msgspec.structs.replace(before, paused=True, revision=before.revision + 1)


def resumed(before: Schedule, now: Micros) -> Schedule:
    """The schedule, resumed: its next tick is the first after now; ticks missed while paused are not made up."""
    if not before.paused:
        return before
    return _replanned(msgspec.structs.replace(before, paused=False, revision=before.revision + 1), now)


def _replanned(schedule: Schedule, now: Micros) -> Schedule:
    """The schedule at its next tick after the last fired one, also if the clock was set back since."""
    begin = now if schedule.last_at is None else max(now, to_micros(schedule.last_at))
    following = schedule.rules.timetable(to_micros(schedule.created_at)).next(begin)
    return msgspec.structs.replace(schedule, next_at=None if following is None else to_datetime(following))


def _times(schedule: Schedule) -> object:
    """The times of the schedule; None if the row was edited by hand and cannot be read."""
    try:
        rules = schedule.rules
    except WindlassError:
        return None
    return rules.cron, rules.every, rules.tz

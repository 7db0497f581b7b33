"""Firing: what becomes of a schedule when it is written, paused or due. Decided here, applied by a store.

A tick is seen to once: its jobs are handed in and the schedule goes on to the next tick by one call, which does
nothing if somebody else was there before (`was_next`) or the schedule was changed meanwhile (`revision`). The next
tick always lies behind the last one that was seen to, whatever the clocks do.

Where jobs and schedules cannot be written by one call, the plan is written first: whoever finds one finishes it, and
nothing is decided anew. A plan and the schedule as it stands make the same jobs, whoever makes them.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from windlass.core.idempotency import OnConflict
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.moments import Micros, to_datetime, to_micros
from windlass.core.schedule import Schedule, ScheduleRules, ScheduleSettings, merge
from windlass.core.ticks import due, jittered, tick_id
from windlass.errors import WindlassError


class Plan(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What was decided of a schedule at a moment: with the schedule as it stands, everything follows from this."""

    now: Micros
    ticks: tuple[Micros, ...]
    next: Micros | None
    missed: int


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule has to do now: hand jobs in, and go on to its next tick."""

    name: str
    created_at: Micros
    """Of the schedule: one of the same name that was made anew is another."""
    revision: int
    was_next: Micros
    now: Micros
    """When this was decided."""
    jobs: tuple[NewJob, ...] = ()
    """Those of its ticks, in their order."""
    next: Micros | None
    missed: int = 0

    @property
    def plan(self) -> Plan:
        """What it comes from; see `planned`."""
        ticks = tuple(job.tick for job in self.jobs if job.tick is not None)
        return Plan(now=self.now, ticks=ticks, next=self.next, missed=self.missed)


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a firing."""

    done: bool
    """False: the schedule is elsewhere by now, and nothing was done."""
    jobs: tuple[JobId, ...] = ()
    """Those that were handed in."""
    skipped: int = 0


def key_of(name: str) -> str:
    """The idempotency key of the jobs of a schedule of which only one runs at a time."""
    return f"schedule:{name}"


def firing(schedule: Schedule, now: Micros) -> Firing:
    """What a schedule has to do at a moment."""
    assert schedule.next_at is not None
    rules, pending = schedule.rules, to_micros(schedule.next_at)
    found = due(rules.timetable(to_micros(schedule.created_at)), pending, now, rules.catch_up)
    return _planned(schedule, rules, Plan(now=now, ticks=found.ticks, next=found.next, missed=found.missed))


def planned(schedule: Schedule, plan: Plan) -> Firing:
    """What a plan says that was made of this schedule, as it stands."""
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


def job_now(schedule: Schedule, id_: JobId, fresh: str) -> NewJob:
    """A job that somebody wants of a schedule at once: of no tick."""
    return _of(schedule.name, schedule.rules, id=id_, fresh=fresh)


def _job(name: str, rules: ScheduleRules, tick: Micros, now: Micros) -> NewJob:
    """The one job of a tick, whoever makes it."""
    job = _of(name, rules, id=tick_id(name, tick), tick=tick, run_at=jittered(name, tick, rules.jitter))
    if job.expires is None or job.run_at is None:
        return job
    # It has all of its time, also if it is late or jitter makes it wait.
    return msgspec.structs.replace(job, expires=None, expires_at=max(now, job.run_at) + job.expires)


def _of(name: str, rules: ScheduleRules, **fields: object) -> NewJob:
    key = None if rules.overlap else key_of(name)
    own = {"schedule": name, "idempotency_key": key, "idempotency_window": None, "on_conflict": OnConflict.EXISTING}
    return msgspec.structs.replace(rules.job, **own, **fields)


def standing(found: Mapping[str, Schedule], firings: Sequence[Firing]) -> dict[str, Firing]:
    """Which of the firings can be done, by name: one for each schedule that is where the decision found it."""
    able: dict[str, Firing] = {}
    for each in firings:
        if each.name not in able and _stands(found.get(each.name), each):
            able[each.name] = each
    return able


def _stands(schedule: Schedule | None, wanted: Firing) -> bool:
    if schedule is None or schedule.paused or schedule.next_at is None or schedule.revision != wanted.revision:
        return False
    return (to_micros(schedule.created_at), to_micros(schedule.next_at)) == (wanted.created_at, wanted.was_next)


def fired(wanted: Firing, stored: Collection[JobId]) -> Fired:
    """What became of one that was done: a job that is not among those that stand met another one's key."""
    ours = tuple(job.id for job in wanted.jobs if job.id in stored)
    return Fired(done=True, jobs=ours, skipped=len(wanted.jobs) - len(ours))


def applied(schedule: Schedule, fired: Firing, done: Fired) -> Schedule:
    """The schedule after a firing."""
    ticks = [job.tick for job in fired.jobs if job.tick is not None]
    return msgspec.structs.replace(
        schedule,
        next_at=None if fired.next is None else to_datetime(fired.next),
        last_at=to_datetime(max(ticks)) if ticks else schedule.last_at,
        last_job=done.jobs[-1] if done.jobs else schedule.last_job,
        missed=schedule.missed + fired.missed,
        skipped=schedule.skipped + done.skipped,
    )


def made(name: str, now: Micros, *, declared: ScheduleSettings, changed: ScheduleSettings) -> Schedule:
    """A new schedule: its first tick is the first after now."""
    bare = Schedule(name=name, created_at=to_datetime(now), declared=declared, changed=changed)
    return _replanned(bare, now)


def rewritten(before: Schedule, now: Micros, declared: ScheduleSettings, changed: ScheduleSettings) -> Schedule:
    """The schedule with other settings. If its times are the same, what is due stays due; else it begins anew."""
    after = msgspec.structs.replace(before, declared=declared, changed=changed, revision=before.revision + 1)
    merge(declared, changed)  # what holds nothing is refused
    return after if _times(before) == _times(after) else _replanned(after, now)


def paused(before: Schedule) -> Schedule:
    """It hands nothing in."""
    return msgspec.structs.replace(before, paused=True, revision=before.revision + 1)


def resumed(before: Schedule, now: Micros) -> Schedule:
    """It goes on with the first tick after now: what passed while it was paused is not made up."""
    if not before.paused:
        return before
    return _replanned(msgspec.structs.replace(before, paused=False, revision=before.revision + 1), now)


def _replanned(schedule: Schedule, now: Micros) -> Schedule:
    """Behind the last tick that was seen to, though the clock may have been set back since."""
    begin = now if schedule.last_at is None else max(now, to_micros(schedule.last_at))
    following = schedule.rules.timetable(to_micros(schedule.created_at)).next(begin)
    return msgspec.structs.replace(schedule, next_at=None if following is None else to_datetime(following))


def _times(schedule: Schedule) -> object:
    """None, if somebody has edited it by hand into something that has none."""
    try:
        rules = schedule.rules
    except WindlassError:
        return None
    return rules.cron, rules.every, rules.tz

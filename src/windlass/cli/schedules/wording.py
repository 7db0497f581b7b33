"""A schedule for people and programs: its times in words, in its own zone and in that of this machine."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from windlass.cli.output.advice import Advice
from windlass.cli.output.tables import ago, console, hanging, plain
from windlass.core.codec import readable
from windlass.core.moments import SECOND, Micros, show_duration
from windlass.core.schedules.schedule import Schedule, ScheduleRules, ScheduleSettings, merge
from windlass.core.schedules.ticks import CatchUp
from windlass.errors import WindlassError

RUNS_SHOWN = 5
OVERDUE: Micros = 10 * SECOND
"""A schedule that did not fire for this long after its time shows that no coordinator runs."""

_CAUGHT_UP = {
    CatchUp.ONE: "of missed runs the last is made up",
    CatchUp.ALL: "missed runs are made up",
    CatchUp.NONE: "missed runs are not made up",
}
WORDS: dict[str, Callable[[ScheduleRules], str]] = {
    "job": lambda rules: f"{rules.job.type} {rules.job.payload} in {rules.job.queue}",
    "cron": lambda rules: _lower(rules.in_words),
    "every": lambda rules: _lower(rules.in_words),
    "tz": lambda rules: rules.tz,
    "catch_up": lambda rules: _CAUGHT_UP[rules.catch_up],
    "overlap": lambda rules: "runs may overlap" if rules.overlap else "no overlap",
    "jitter": lambda rules: f"up to {show_duration(rules.jitter)} later" if rules.jitter else "no jitter",
}


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def row_of(schedule: Schedule) -> list[str]:
    """One line of a list."""
    tick = None if schedule.paused else schedule.next_at
    last = ago(schedule.last_at) if schedule.last_at else "none yet"
    there = "paused" if schedule.paused else "never" if tick is None else _there(schedule, tick)
    here = "-" if tick is None else "the same" if there == _here(tick) else _here(tick)
    return [schedule.name, there, here, last, sentence(schedule)]


def sentence(schedule: Schedule) -> str:
    """Its times, its job, and ticks that did not run; on a line of its own what an operator has set."""
    if (problem := schedule.problem) is not None:
        return f"broken: {problem}"
    rules, when = schedule.rules, schedule.in_words
    job = rules.job
    arguments = "" if job.payload == "{}" else f" {job.payload if len(job.payload) <= 60 else job.payload[:59] + '…'}"
    said = [f"{when}: {job.type}{arguments} in {job.queue}", WORDS["catch_up"](rules)]
    said += [WORDS["overlap"](rules)] if not rules.overlap else []
    said += [WORDS["jitter"](rules)] if rules.jitter else []
    said += [f"{count:,} {what}" for what, count in _losses(schedule).items() if count]
    said += _late(schedule)
    return "; ".join(said) + _by_operator(schedule)


def _late(schedule: Schedule) -> list[str]:
    """Whether its time is over and it did not fire."""
    if schedule.paused or schedule.next_at is None:
        return []
    late = round((datetime.now(UTC) - schedule.next_at).total_seconds() * SECOND)
    return [f"overdue by {show_duration(late)}: is a worker alive? (windlass doctor)"] if late > OVERDUE else []


def _losses(schedule: Schedule) -> dict[str, int]:
    return {"missed": schedule.missed, "skipped": schedule.skipped}


def _by_operator(schedule: Schedule) -> str:
    if schedule.declared.job is None:
        return "\nMade by an operator"
    plain_rules = merge(schedule.declared, ScheduleSettings())
    names = [name for name in WORDS if getattr(schedule.changed, name) is not None]
    said = {name: name in ("cron", "every") or getattr(schedule.declared, name) is not None for name in names}
    each = [
        name.replace("_", "-") + (f" (the code says {WORDS[name](plain_rules)})" if said[name] else "")
        for name in names
    ]
    return f"\nSet by an operator: {', '.join(each)}" if each else ""


def next_run(schedule: Schedule) -> str:
    """The next run in its own zone and here, and in how long."""
    if schedule.paused:
        return "none, it is paused"
    if schedule.next_at is None:
        return "never"
    return _coming(schedule, schedule.next_at)


def describe(schedule: Schedule, last_job: str, advice: Advice) -> None:
    """All details of a schedule."""
    out = console()
    out.print(plain(schedule.name, "bold"), plain("paused" if schedule.paused else "", "yellow"))
    facts = {
        "when": advice(sentence(schedule)),
        "last tick": _both(schedule, schedule.last_at) if schedule.last_at else "none yet",
        "last job": last_job,
        "made": _both(schedule, schedule.created_at),
    }
    for name, value in facts.items():
        out.print(hanging(f"  {name:12}", value))
    problem = schedule.problem
    if problem is None:
        out.print(hanging(f"  {'arguments':12}", schedule.rules.job.payload))
    out.print("\n[bold]Next runs[/]")
    runs = schedule.upcoming(RUNS_SHOWN) if problem is None else ()
    for moment in runs:
        out.print(plain(f"  {_coming(schedule, moment)}"))
    if not runs:
        out.print(plain(f"  {next_run(schedule) if problem is None else 'unknown: the schedule is broken'}"))


def _coming(schedule: Schedule, moment: datetime) -> str:
    """A tick that has come and is not fired yet is due, not past."""
    return _both(schedule, moment, "due now" if moment <= datetime.now(UTC) else ago(moment))


def _both(schedule: Schedule, moment: datetime, away: str | None = None) -> str:
    there, here = _there(schedule, moment), _here(moment)
    return f"{there if there == here else f'{there}, here {here}'} ({away or ago(moment)})"


def _there(schedule: Schedule, moment: datetime) -> str:
    """The next tick in the schedule's own zone; an interval has none, nor has a schedule that cannot be read."""
    try:
        return _clock(moment.astimezone(ZoneInfo(schedule.rules.tz)))
    except (WindlassError, KeyError, ValueError, OSError):
        return _clock(moment)


def _here(moment: datetime) -> str:
    return _clock(moment.astimezone())


def _clock(moment: datetime) -> str:
    return moment.strftime("%a %Y-%m-%d %H:%M:%S %Z" if moment.second else "%a %Y-%m-%d %H:%M %Z")


def record(schedule: Schedule) -> dict[str, Any]:
    """A schedule for programs, in the form of its options: lengths in seconds; null if not set."""
    problem = schedule.problem
    sound = problem is None
    rules, words = (_settings(schedule.rules), schedule.in_words) if sound else ({}, None)
    return {
        "name": schedule.name,
        "paused": schedule.paused,
        **rules,
        "in_words": words,
        "problem": problem,
        "created_at": schedule.created_at,
        "last_at": schedule.last_at,
        "next_at": schedule.next_at,
        "upcoming": schedule.upcoming(RUNS_SHOWN) if sound else (),
        "last_job": schedule.last_job,
        "missed": schedule.missed,
        "skipped": schedule.skipped,
        "declared": _settings(schedule.declared),
        "changed": _settings(schedule.changed),
    }


def _settings(said: ScheduleRules | ScheduleSettings) -> dict[str, Any]:
    job = said.job
    shown = job and {"type": job.type, "queue": job.queue, "priority": job.priority, "payload": readable(job.payload)}
    return {
        "job": shown,
        "cron": None if said.cron is None else str(said.cron),
        "every": None if said.every is None else said.every / SECOND,
        "tz": said.tz,
        "catch_up": said.catch_up,
        "overlap": said.overlap,
        "jitter": None if said.jitter is None else said.jitter / SECOND,
    }

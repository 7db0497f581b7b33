"""The law of schedules: one job for each tick, whatever fires it, and none is passed over but by the catch-up rule.

A test tells of its schedules by lines `schedule` (what each was told, and its first tick), and in the end by lines
`final` (where the store says that each is). What coordinators did in between are the calls `fire`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.checker.lines import Line
from tests.support.checker.lives import Firing, Times
from tests.support.checker.order import Found, Jobs
from tests.support.checker.spans import micros
from windlass.core.schedules.cron import parse_cron
from windlass.core.schedules.ticks import LATE, CatchUp, Timetable, tick_id


def twice(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I10: a tick has one job, whose id is made of it, and is a moment of its schedule."""
    seen: dict[tuple[str, int], str] = {}
    for job in jobs.values():
        name, at = job.get("schedule"), job.get("tick")
        if name is None or at is None:
            continue
        tick = micros(at)
        if (name, tick) in seen:
            yield job["id"], f"tick {tick} of {name!r} has another job, {seen[name, tick]}"
        seen[name, tick] = job["id"]
        if job["id"] != tick_id(name, tick):
            yield job["id"], f"it is said to be of tick {tick} of {name!r}, and has another id"
        declared = times.schedules.get(name)
        if declared is not None and timetable(declared).next(tick - 1) != tick:
            yield job["id"], f"{tick} is no tick of {name!r}"


def timetable(declared: Line) -> Timetable:
    """The ticks of a schedule, by what it was told."""
    cron = declared.get("cron")
    return Timetable(
        cron=None if cron is None else parse_cron(cron),
        zone=declared.get("tz") or "UTC",
        every=declared.get("every"),
        anchor=declared["anchor"],
    )


def passed_over(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I10: each firing begins where the one before it ended, and enqueues what the rule says; nothing is left due."""
    for name, declared in times.schedules.items():
        tick_run, stray = _tick_run(declared, times.firings.get(name, []), times.final.get(name))
        for firing in stray:
            yield (
                None,
                f"{name!r} was fired from {firing.was_next}, whereto no firing had led, or which another left",
            )
        for firing in tick_run:
            yield from ((None, f"{name!r} at {firing.was_next}: {wrong}") for wrong in _wrong(declared, firing))
            yield from _without_job(firing, declared, times, jobs)
        if name in times.final:
            yield from ((None, f"{name!r}: {wrong}") for wrong in _left(declared, tick_run, times.final[name]))


def _tick_run(declared: Line, firings: list[Firing], end: Line | None) -> tuple[list[Firing], list[Firing]]:
    """The firings that were done, one after the other; and those that were said to be done and are none of these."""
    by_place: dict[int, list[Firing]] = defaultdict(list)
    for firing in firings:
        if firing.done is not False:
            by_place[firing.was_next].append(firing)
    places = {*by_place, *([end["next_at"]] if end else [])}
    tick_run: list[Firing] = []
    at: int | None = declared["next_at"]
    while at is not None and by_place.get(at):
        # One whose answer was lost may have been done: then another continued from where it led.
        likely = min(by_place[at], key=lambda each: (_is_part(each), each.next not in places, not each.done))
        if not likely.done and likely.next not in places:
            break
        tick_run.append(likely)
        at = likely.next
    return tick_run, [firing for firing in firings if firing.done and not _belongs(firing, tick_run)]


def _is_part(firing: Firing) -> bool:
    """Whether other things were done than it wanted: it may have finished what another had begun."""
    return bool(firing.done) and len(firing.enqueued) + firing.skipped != len(firing.jobs)


def _belongs(firing: Firing, tick_run: list[Firing]) -> bool:
    """Whether it is one of these, or the one that finished what was not known to be done."""
    alike = [each for each in tick_run if each.was_next == firing.was_next]
    return any(each is firing or not each.done for each in alike)


def _wrong(declared: Line, firing: Firing) -> Iterator[str]:
    """Ticks are run from some moment on, all of them; those before it were missed, if the rule allows that."""
    end = firing.next if firing.next is not None else max(firing.ticks, default=firing.was_next) + 1
    came = list(timetable(declared).between(firing.was_next - 1, end - 1))
    over = came[: len(came) - len(firing.ticks)]
    if came != [*over, *firing.ticks]:
        yield f"ticks {came} had come, and it ran {firing.ticks}"
    if bool(over) != bool(firing.missed):
        yield f"it passed over {len(over)} ticks, and says {firing.missed}"
    if over:
        yield from _not_made_up(CatchUp(declared["catch_up"]), firing)
    if firing.now is not None:
        yield from _untimely(CatchUp(declared["catch_up"]), firing, over, firing.now)


def _not_made_up(rule: CatchUp, firing: Firing) -> Iterator[str]:
    if rule is CatchUp.ALL:
        yield "it passed over ticks, all of which were to be made up for"
    if rule is CatchUp.ONE and not firing.ticks:
        yield "it passed over ticks, and made up for none"


def _untimely(rule: CatchUp, firing: Firing, over: list[int], now: int) -> Iterator[str]:
    if any(tick > now for tick in firing.ticks):
        yield f"it ran ticks {firing.ticks} at {now}, before their time"
    if any(tick > now - LATE for tick in over):
        yield f"it passed over ticks {over[-10:]} at {now}, which were not late"
    late = sum(1 for tick in firing.ticks if tick <= now - LATE)
    if (rule is CatchUp.NONE and late) or (rule is CatchUp.ONE and late > 1):
        yield f"it made up for {late} ticks at {now}, and its rule is {rule.value}"


def _without_job(firing: Firing, declared: Line, times: Times, jobs: Jobs) -> Iterator[Found]:
    """A schedule goes on only with the jobs of its ticks."""
    if _is_part(firing):
        yield (
            None,
            f"{firing.schedule!r}: {firing.enqueued} were enqueued and {firing.skipped} skipped of {firing.jobs}",
        )
    if not declared.get("overlap", True):
        return
    if firing.skipped:
        yield None, f"{firing.schedule!r} skipped {firing.skipped} ticks, though its jobs may overlap"
    for id_ in firing.jobs:
        if id_ not in jobs and not times.life(id_).acted("delete"):
            yield id_, f"{firing.schedule!r} went on from its tick, and it is not there"


def _left(declared: Line, tick_run: list[Firing], final: dict[str, Any]) -> Iterator[str]:
    end = tick_run[-1].next if tick_run else declared["next_at"]
    if end != final["next_at"]:
        yield f"its firings lead to {end}, and it is at {final['next_at']}"
    if final["next_at"] is not None and final["next_at"] <= final["now"]:
        yield f"it has been due since {final['next_at']}, and it is {final['now']}"
    for what in ("missed", "skipped"):
        total = sum(getattr(firing, what) for firing in tick_run)
        if all(firing.done for firing in tick_run) and final[what] != total:
            yield f"it says that {final[what]} ticks were {what}, and {total} were"


TICKS: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I10", twice),
    ("I10", passed_over),
]

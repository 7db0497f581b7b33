"""Schedules in histories made by hand: those in which every tick is seen to once pass, others do not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.torture.test_checker import OTHER, RUNNER, Tale
from windlass.core.moments import SECOND
from windlass.core.schedules.ticks import tick_id

BEGINNING = 1_767_225_600
"""In seconds; a schedule of these tales comes every minute since."""


def micros(minute: float) -> int:
    return round((BEGINNING + 60 * minute) * SECOND)


class Clockwork(Tale):
    """Ticks by their number: the tick 1 is a minute after the beginning."""

    def declared(self, name: str = "s", **rules: Any) -> None:
        facts = {"every": 60 * SECOND, "catch_up": "one", "anchor": micros(0), "next_at": micros(1)}
        self.say("schedule", name=name, **{**facts, **rules})

    def want(self, ticks: list[int], was: int, following: int, now: float, **facts: Any) -> int:
        """A coordinator looks, decides and asks; the number of its call."""
        name, pid = facts.pop("name", "s"), facts.pop("pid", RUNNER)
        self.call("due", {}, {"now": micros(now), "schedules": 1}, pid)
        jobs = [
            {"job": self.job(tick, name), "queue": "q", "type": "t", "priority": 0, "payload": "p", "key": None}
            | {"waits": True, "schedule": name, "tick": micros(tick)}
            for tick in ticks
        ]
        firing = {"name": name, "revision": 0, "was_next": micros(was), "next": micros(following), "jobs": jobs}
        firing["missed"] = facts.get("missed", following - was - len(ticks))
        return self.ask("fire", pid, firings=[firing])

    def fire(self, ticks: list[int], was: int, following: int, now: float, **facts: Any) -> None:
        """The same, and it is done."""
        pid, name = facts.get("pid", RUNNER), facts.get("name", "s")
        skipped, done = facts.pop("skipped", 0), facts.pop("done", True)
        call = self.want(ticks, was, following, now, **facts)
        ids = [self.job(tick, name) for tick in ticks[skipped:]] if done else []
        fired = {"done": done, "jobs": ids, "skipped": skipped if done else 0}
        self.say("fire", pid, step="ok", call=call, fired=[fired])
        if done:
            self.store(*ticks[skipped:], name=name)

    def store(self, *ticks: int, name: str = "s") -> None:
        for tick in ticks:
            at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros(tick))
            self.keep(self.job(tick, name), status="pending", schedule=name, tick=at.isoformat())

    def final(self, following: int, now: float, missed: int = 0, skipped: int = 0) -> None:
        self.say("final", name="s", next_at=micros(following), now=micros(now), missed=missed, skipped=skipped)

    def job(self, tick: int, name: str = "s") -> str:
        return tick_id(name, micros(tick))


# Good ones.


def a_tick_after_the_other(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([2], 2, 3, 2.01)
    works.final(3, 2.5)


def two_saw_the_same_and_one_did_it(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([1], 1, 2, 1.01, pid=OTHER, done=False)
    works.fire([2], 2, 3, 2.01, pid=OTHER)


def a_firing_without_an_answer_was_done(works: Clockwork) -> None:
    works.declared()
    works.want([1], 1, 2, 1.01)
    works.store(1)
    works.fire([2], 2, 3, 2.01, pid=OTHER)
    works.final(3, 2.5)


def a_firing_without_an_answer_was_not_done(works: Clockwork) -> None:
    works.declared()
    works.want([1], 1, 2, 1.01)
    works.fire([1], 1, 2, 1.05, pid=OTHER)
    works.final(2, 1.5)


def a_firing_without_an_answer_is_finished_by_another(works: Clockwork) -> None:
    works.declared()
    works.want([1], 1, 2, 1.01)
    call = works.want([1, 2], 1, 3, 2.01, pid=OTHER)
    works.say("fire", OTHER, step="ok", call=call, fired=[{"done": True, "jobs": [works.job(1)], "skipped": 0}])
    works.store(1)
    works.fire([2], 2, 3, 2.05)
    works.final(3, 2.5)


def after_an_outage_one_is_made_up_for(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([9], 2, 10, 9.5)
    works.final(10, 9.6, missed=7)


def after_an_outage_all_are_made_up_for(works: Clockwork) -> None:
    works.declared(catch_up="all")
    works.fire([1, 2, 3, 4], 1, 5, 4.5)
    works.final(5, 4.6)


def after_an_outage_none_is_made_up_for(works: Clockwork) -> None:
    works.declared(catch_up="none")
    works.fire([], 1, 5, 4.5)
    works.fire([5], 5, 6, 5.01)
    works.final(6, 5.5, missed=4)


def without_overlap_one_is_skipped(works: Clockwork) -> None:
    works.declared(overlap=False)
    works.fire([1], 1, 2, 1.01)
    works.fire([2], 2, 3, 2.01, skipped=1)
    works.final(3, 2.5, skipped=1)


GOOD: list[Callable[[Clockwork], None]] = [
    a_tick_after_the_other,
    two_saw_the_same_and_one_did_it,
    a_firing_without_an_answer_was_done,
    a_firing_without_an_answer_was_not_done,
    a_firing_without_an_answer_is_finished_by_another,
    after_an_outage_one_is_made_up_for,
    after_an_outage_all_are_made_up_for,
    after_an_outage_none_is_made_up_for,
    without_overlap_one_is_skipped,
]


# Bad ones.


def a_tick_is_fired_twice(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([1], 1, 2, 1.01, pid=OTHER)


def a_tick_has_two_jobs(works: Clockwork) -> None:
    a_tick_after_the_other(works)
    works.keep("another", status="pending", schedule="s", tick=works.jobs[works.job(1)]["tick"])


def a_job_has_the_id_of_another_tick(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.store(2)
    works.keep(works.job(1), tick=works.jobs.pop(works.job(2))["tick"])


def a_job_is_of_no_tick(works: Clockwork) -> None:
    works.declared(every=3600 * SECOND)
    works.store(7)


def a_schedule_goes_back(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([2], 2, 3, 2.01)
    works.fire([2], 2, 3, 2.05)


def a_tick_is_left_out(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01)
    works.fire([3], 3, 4, 3.01)


def a_tick_is_passed_over_that_was_not_late(works: Clockwork) -> None:
    works.declared(catch_up="none")
    works.fire([], 1, 2, 1.01)


def a_tick_is_passed_over_and_nothing_is_recorded(works: Clockwork) -> None:
    works.declared()
    works.fire([9], 1, 10, 9.5, missed=0)


def all_were_to_be_made_up_for_and_one_was(works: Clockwork) -> None:
    works.declared(catch_up="all")
    works.fire([9], 1, 10, 9.5)


def one_was_to_be_made_up_for_and_none_was(works: Clockwork) -> None:
    works.declared()
    works.fire([], 1, 10, 9.5)


def one_was_to_be_made_up_for_and_all_were(works: Clockwork) -> None:
    works.declared()
    works.fire([1, 2, 3], 1, 4, 3.5)


def none_was_to_be_made_up_for_and_one_was(works: Clockwork) -> None:
    works.declared(catch_up="none")
    works.fire([9], 1, 10, 9.5)


def another_one_was_made_up_for_than_the_last(works: Clockwork) -> None:
    works.declared()
    works.fire([4], 1, 10, 9.5)


def a_tick_runs_before_its_time(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 0.5)


def a_schedule_goes_on_without_the_job_of_its_tick(works: Clockwork) -> None:
    works.declared()
    works.want([1], 1, 2, 1.01)
    works.fire([2], 2, 3, 2.01, pid=OTHER)


def a_tick_is_skipped_though_its_jobs_may_overlap(works: Clockwork) -> None:
    works.declared()
    works.fire([1], 1, 2, 1.01, skipped=1)


def a_tick_is_due_and_nothing_fires_it(works: Clockwork) -> None:
    a_tick_after_the_other(works)
    works.final(3, 3.5)


def a_schedule_is_elsewhere_than_it_was_led(works: Clockwork) -> None:
    a_tick_after_the_other(works)
    works.final(4, 2.5)


def a_missed_tick_is_not_counted(works: Clockwork) -> None:
    after_an_outage_one_is_made_up_for(works)
    works.final(10, 9.6)


BAD: list[Callable[[Clockwork], None]] = [
    a_tick_is_fired_twice,
    a_tick_has_two_jobs,
    a_job_has_the_id_of_another_tick,
    a_job_is_of_no_tick,
    a_schedule_goes_back,
    a_tick_is_left_out,
    a_tick_is_passed_over_that_was_not_late,
    a_tick_is_passed_over_and_nothing_is_recorded,
    all_were_to_be_made_up_for_and_one_was,
    one_was_to_be_made_up_for_and_none_was,
    one_was_to_be_made_up_for_and_all_were,
    none_was_to_be_made_up_for_and_one_was,
    another_one_was_made_up_for_than_the_last,
    a_tick_runs_before_its_time,
    a_schedule_goes_on_without_the_job_of_its_tick,
    a_tick_is_skipped_though_its_jobs_may_overlap,
    a_tick_is_due_and_nothing_fires_it,
    a_schedule_is_elsewhere_than_it_was_led,
    a_missed_tick_is_not_counted,
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_schedule_that_is_kept_passes(good: Callable[[Clockwork], None]) -> None:
    works = Clockwork()
    good(works)
    report = works.judge()
    assert not report.violations, str(report)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_schedule_that_is_not_kept_is_caught(bad: Callable[[Clockwork], None]) -> None:
    works = Clockwork()
    bad(works)
    report = works.judge()
    assert "I10" in report.laws, str(report)


def test_a_tick_that_was_skipped_and_is_there_all_the_same_is_caught() -> None:
    works = Clockwork()
    without_overlap_one_is_skipped(works)
    works.store(2)
    assert "I2" in works.judge().laws

"""Histories with a claim that was cut: it excuses what its rows may have hidden, and no more."""

from collections.abc import Callable

import pytest

from tests.torture.test_checker import RUNNER, Tale


def a_cut_claim_hides_jobs_where_nothing_is_passed_over(tale: Tale) -> None:
    tale.enqueue("a")
    tale.cut_claim("q")
    tale.enqueue("b")
    tale.run("b")
    tale.run("a")


def a_claim_is_cut_after_a_new_job_was_claimed(tale: Tale) -> None:
    tale.say("skips_locked")
    tale.enqueue("a")
    tale.enqueue("b")
    tale.run("b")
    tale.cut_claim("q")
    tale.run("a")


def a_job_that_was_stored_after_a_claim_was_cut_is_overtaken(tale: Tale) -> None:
    tale.say("skips_locked")
    tale.say("sample", of=RUNNER, files=1, memory=1, zombies=0)
    tale.enqueue("a")
    tale.enqueue("b")
    tale.run("b")
    tale.run("a")


def a_claim_of_another_queue_is_cut(tale: Tale) -> None:
    tale.say("skips_locked")
    tale.enqueue("a")
    tale.cut_claim("another")
    tale.enqueue("b")
    tale.run("b")
    tale.run("a")


def more_jobs_are_overtaken_than_a_cut_claim_had_asked_for(tale: Tale) -> None:
    tale.say("skips_locked")
    tale.enqueue("a")
    tale.enqueue("b")
    tale.cut_claim("q", limit=1)
    tale.enqueue("c")
    for job in ("c", "a", "b"):
        tale.run(job)


def what_a_cut_claim_had_locked_is_not_found_in_time(tale: Tale) -> None:
    tale.say("skips_locked")
    tale.enqueue("a")
    tale.cut_claim("q")
    for number in range(20):
        tale.enqueue(f"b{number}")
        tale.run(f"b{number}")
    tale.run("a")


BAD: list[Callable[[Tale], None]] = [
    a_cut_claim_hides_jobs_where_nothing_is_passed_over,
    a_claim_is_cut_after_a_new_job_was_claimed,
    a_job_that_was_stored_after_a_claim_was_cut_is_overtaken,
    a_claim_of_another_queue_is_cut,
    more_jobs_are_overtaken_than_a_cut_claim_had_asked_for,
    what_a_cut_claim_had_locked_is_not_found_in_time,
]


@pytest.mark.parametrize("bad", BAD, ids=lambda each: each.__name__)
def test_a_job_that_no_cut_claim_can_have_locked_is_not_overtaken(bad: Callable[[Tale], None]) -> None:
    tale = Tale()
    bad(tale)
    report = tale.judge()
    assert "I8" in report.laws, str(report)

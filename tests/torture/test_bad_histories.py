"""Bad histories, made by hand: each is caught by the law that it breaks."""

from collections.abc import Callable

import pytest

from tests.torture.test_checker import (
    OTHER,
    PRODUCER,
    RUNNER,
    Tale,
    a_key_is_used_again_when_it_is_free,
    a_runner_is_killed_and_its_job_runs_again,
    everything_goes_well,
)


def an_acknowledged_job_is_gone(tale: Tale) -> None:
    everything_goes_well(tale)
    del tale.jobs["b"]


def a_job_is_in_two_places(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.twice.append(dict(tale.jobs["b"]))


def a_job_is_completed_without_having_run(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.settle("a")


def a_job_runs_that_was_not_enqueued(tale: Tale) -> None:
    tale.run("a")


def a_refused_enqueue_is_there_all_the_same(tale: Tale) -> None:
    tale.refuse("a")
    tale.run("a")


def a_refused_enqueue_is_found_by_the_next(tale: Tale) -> None:
    tale.refuse("a")
    tale.say("enqueue", PRODUCER, step="ok", call=tale.offer("a"), answers=[["a", True]])
    tale.run("a")


def a_refused_enqueue_is_claimed_before_the_next(tale: Tale) -> None:
    tale.refuse("a")
    tale.claim("a")
    tale.enqueue("a")
    tale.start("a")
    tale.end("a")
    tale.settle("a")


def a_job_is_charged_with_a_crash_because_of_a_pause(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER, kills=False)
    tale.rescue("a", outcome="crashed")
    tale.run("a", 2, OTHER)


def a_job_is_suspected_by_the_store_alone(tale: Tale) -> None:
    tale.enqueue("a")
    tale.run("a")
    tale.keep("a", attempts=[{"attempt": 1, "outcome": "crashed among several"}])


def a_handler_gets_another_payload(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a", payload="other")
    tale.start("a")
    tale.end("a")
    tale.settle("a")


def a_job_runs_twice_for_no_reason_that_the_store_knows(tale: Tale) -> None:
    a_runner_is_killed_and_its_job_runs_again(tale)
    tale.keep("a", rescues=0)


def a_job_runs_beyond_its_budget(tale: Tale) -> None:
    tale.enqueue("a")
    for attempt in (1, 2, 3, 4):
        tale.claim("a", attempt)
        tale.start("a", attempt)
        tale.end("a", attempt, outcome="Raised")
        tale.settle("a", attempt, status="failed")
        tale.keep("a", failures=attempt)


def a_job_runs_again_although_its_runner_lives(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(OTHER)
    tale.rescue("a")
    tale.run("a", 2, OTHER)


def a_job_runs_again_because_of_a_fault_before_it_was_claimed(tale: Tale) -> None:
    tale.enqueue("a")
    tale.fault(RUNNER)
    tale.claim("a")
    tale.start("a")
    tale.rescue("a")
    tale.run("a", 2, OTHER)


def two_attempts_overlap(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER)
    tale.rescue("a")
    tale.claim("a", 2, OTHER)
    tale.start("a", 2, OTHER)
    tale.end("a")
    tale.end("a", 2, OTHER)
    tale.settle("a", 2, pid=OTHER)


def a_job_is_claimed_while_another_holds_it(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.run("a", 2, OTHER)


def a_late_outcome_is_taken(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.end("a")
    tale.fault(RUNNER)
    tale.rescue("a")
    tale.claim("a", 2, OTHER)
    tale.settle("a", 1)


def an_attempt_ends_twice(tale: Tale) -> None:
    tale.enqueue("a")
    tale.run("a")
    tale.settle("a")


def a_finished_job_begins_again(tale: Tale) -> None:
    tale.enqueue("a")
    tale.run("a")
    tale.keep("a", rescues=1)
    tale.run("a", 2)


def a_running_job_becomes_blocked(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.settle("a", status="blocked")


def a_completed_job_is_dead(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.keep("b", status="dead")


def a_new_job_is_claimed_before_its_turn(tale: Tale) -> None:
    tale.enqueue("a")
    tale.enqueue("b")
    tale.run("b")
    tale.run("a")


def two_jobs_hold_one_key(tale: Tale) -> None:
    tale.enqueue("a", key="k")
    tale.enqueue("b", key="k")
    tale.run("a")
    tale.run("b")


def the_loser_of_a_key_runs(tale: Tale) -> None:
    a_key_is_used_again_when_it_is_free(tale)
    tale.run("b")


def a_caller_is_told_of_an_unknown_winner(tale: Tale) -> None:
    tale.enqueue("a", key="k", winner="nobody")


def an_attempt_number_is_seen_twice(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER)
    tale.keep("a", rescues=1)
    tale.start("a", 1, OTHER)
    tale.end("a", 1, OTHER)
    tale.settle("a")


def an_attempt_number_goes_down(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a", 2)
    tale.settle("a", 2, status="pending")
    tale.run("a", 1)
    tale.keep("a", attempt=2, requeues=1)


def the_store_forgets_an_attempt(tale: Tale) -> None:
    a_runner_is_killed_and_its_job_runs_again(tale)
    tale.keep("a", attempt=1, status="pending")


def a_job_is_left_over_in_the_end(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.enqueue("d")
    tale.say("healed", seconds=30)
    tale.say("drained", leases=[])


def it_never_drains(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.say("healed", seconds=30)


def it_stalls_before_it_drains(tale: Tale) -> None:
    tale.enqueue("a")
    tale.say("healed", seconds=2)
    tale.run("a")
    tale.say("drained", leases=[])


def a_lease_is_left_over(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.say("healed", seconds=30)
    tale.say("drained", leases=["r1"])


def the_counts_are_wrong(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.counts = {"completed": 2}


def descriptors_leak(tale: Tale) -> None:
    for files in (10, 200):
        tale.say("sample", of=RUNNER, files=files, memory=1 << 20, zombies=0)


def a_zombie_is_left(tale: Tale) -> None:
    tale.say("sample", of=RUNNER, files=1, memory=1 << 20, zombies=1)


BAD: list[tuple[str, Callable[[Tale], None]]] = [
    ("I1", an_acknowledged_job_is_gone),
    ("I1", a_job_is_in_two_places),
    ("I1", a_job_is_completed_without_having_run),
    ("I2", a_job_runs_that_was_not_enqueued),
    ("I2", a_refused_enqueue_is_there_all_the_same),
    ("I2", a_refused_enqueue_is_found_by_the_next),
    ("I2", a_refused_enqueue_is_claimed_before_the_next),
    ("I2", a_handler_gets_another_payload),
    ("I3", a_job_runs_twice_for_no_reason_that_the_store_knows),
    ("I3", a_job_runs_beyond_its_budget),
    ("I4", a_job_runs_again_although_its_runner_lives),
    ("I4", a_job_runs_again_because_of_a_fault_before_it_was_claimed),
    ("I5", two_attempts_overlap),
    ("I5", a_job_is_claimed_while_another_holds_it),
    ("I6", a_late_outcome_is_taken),
    ("I6", an_attempt_ends_twice),
    ("I7", a_finished_job_begins_again),
    ("I7", a_running_job_becomes_blocked),
    ("I7", a_completed_job_is_dead),
    ("I8", a_new_job_is_claimed_before_its_turn),
    ("I9", two_jobs_hold_one_key),
    ("I9", the_loser_of_a_key_runs),
    ("I9", a_caller_is_told_of_an_unknown_winner),
    ("I13", an_attempt_number_is_seen_twice),
    ("I13", an_attempt_number_goes_down),
    ("I13", the_store_forgets_an_attempt),
    ("I15", a_job_is_left_over_in_the_end),
    ("I15", it_never_drains),
    ("I15", it_stalls_before_it_drains),
    ("I15", a_lease_is_left_over),
    ("I16", the_counts_are_wrong),
    ("I17", descriptors_leak),
    ("I17", a_zombie_is_left),
    ("I19", a_job_is_charged_with_a_crash_because_of_a_pause),
    ("I19", a_job_is_suspected_by_the_store_alone),
]


@pytest.mark.parametrize(("law", "bad"), BAD, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_a_bad_history_is_caught_by_the_law_that_it_breaks(law: str, bad: Callable[[Tale], None]) -> None:
    tale = Tale()
    bad(tale)
    report = tale.judge()
    assert law in report.laws, str(report)
    assert law in str(report)

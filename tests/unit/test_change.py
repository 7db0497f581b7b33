"""reschedule: where a waiting job stands after a person moved its time."""

import pytest

from windlass.core.jobs.change import (
    NO_WORKER,
    WAITING_FOR_KEY,
    JobChange,
    Timing,
    may_change,
    may_run_now,
    reschedule,
)
from windlass.core.status import WAITING, Status, may_move

NOW = 1000


@pytest.mark.parametrize("status", sorted(WAITING))
def test_without_a_new_time_nothing_moves(status: Status) -> None:
    before = Timing(status, "why", 5, 7)
    assert reschedule(before, JobChange(priority=1, payload="{}", queue="q"), NOW) is before


@pytest.mark.parametrize("reason", [None, NO_WORKER, WAITING_FOR_KEY, "waits for parents"])
@pytest.mark.parametrize(
    "change", [JobChange(run_at=NOW + 5), JobChange(delay=5), JobChange(run_at=1), JobChange(delay=0)]
)
@pytest.mark.parametrize("status", sorted(WAITING))
def test_every_move_is_a_legal_one(status: Status, change: JobChange, reason: str | None) -> None:
    after = reschedule(Timing(status, reason, 5, 7), change, NOW)
    assert after.status is status or may_move(status, after.status)
    assert after.run_at == (change.run_at if change.run_at is not None else NOW + (change.delay or 0))
    assert (after.status is Status.SCHEDULED) <= (after.run_at > NOW)


def test_run_at_wins_over_a_delay() -> None:
    assert reschedule(Timing(Status.SCHEDULED, None, 5, 7), JobChange(run_at=NOW + 9, delay=5), NOW).run_at == NOW + 9


def test_what_becomes_pending_falls_in_at_the_end() -> None:
    assert reschedule(Timing(Status.SCHEDULED, None, 5000, 5000), JobChange(run_at=1), NOW).rank == NOW


def test_what_is_pending_already_keeps_its_place() -> None:
    assert reschedule(Timing(Status.PENDING, None, 5, 7), JobChange(run_at=1), NOW).rank == 7


def test_what_waits_for_parents_stays_blocked_whatever_its_time() -> None:
    after = reschedule(Timing(Status.BLOCKED, "waits for parents", 5, 7), JobChange(delay=5), NOW)
    assert after == Timing(Status.BLOCKED, "waits for parents", NOW + 5, 7)


@pytest.mark.parametrize("reason", [NO_WORKER, WAITING_FOR_KEY])
def test_a_job_that_is_parked_or_waits_for_its_key_can_be_postponed(reason: str) -> None:
    before = Timing(Status.BLOCKED, reason, 5, 7)
    assert reschedule(before, JobChange(delay=5), NOW) == Timing(Status.SCHEDULED, None, NOW + 5, NOW + 5)
    assert reschedule(before, JobChange(delay=0), NOW) == Timing(Status.BLOCKED, reason, NOW, 7)


def test_of_dead_jobs_only_the_payload_changes() -> None:
    assert {status for status in Status if may_change(status, JobChange(payload="{}"))} == {*WAITING, Status.DEAD}
    assert not may_change(Status.DEAD, JobChange())


def test_only_waiting_jobs_change_and_blocked_ones_cannot_run_now() -> None:
    assert {status for status in Status if may_change(status, JobChange(priority=1, payload="{}"))} == WAITING
    assert {status for status in Status if may_run_now(status)} == WAITING - {Status.BLOCKED}

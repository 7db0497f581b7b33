"""The table of legal moves."""

import pytest

from windlass.core.status import FINISHED, INITIAL, LIVE, MOVES, RETRYABLE, WAITING, Status, may_move


def test_every_status_has_its_row_in_the_table() -> None:
    assert set(MOVES) == set(Status)


def test_every_status_is_either_live_or_finished() -> None:
    assert set(Status) == LIVE | FINISHED
    assert not LIVE & FINISHED
    assert LIVE - {Status.RUNNING} == WAITING


def test_no_status_moves_to_itself() -> None:
    assert not [status for status, after in MOVES.items() if status in after]


def test_only_pending_jobs_start_to_run() -> None:
    assert [status for status in Status if may_move(status, Status.RUNNING)] == [Status.PENDING]


def test_only_running_jobs_complete_fail_or_die() -> None:
    for after in (Status.COMPLETED, Status.FAILED, Status.DEAD):
        assert [status for status in Status if may_move(status, after)] == [Status.RUNNING]


def test_every_live_status_can_be_cancelled_and_no_other() -> None:
    assert {status for status in Status if may_move(status, Status.CANCELLED)} == LIVE


@pytest.mark.parametrize("status", sorted(RETRYABLE))
def test_what_can_be_retried_may_become_pending(status: Status) -> None:
    assert may_move(status, Status.PENDING)


def test_every_status_can_be_reached_from_an_enqueue() -> None:
    reached = set(INITIAL)
    for _ in Status:
        reached |= {after for status in reached for after in MOVES[status]}
    assert reached == set(Status)


def test_a_job_is_not_enqueued_running_or_ended() -> None:
    assert {status for status in Status if may_move(None, status)} == INITIAL.keys()
    assert not INITIAL.keys() & (FINISHED | {Status.RUNNING, Status.FAILED})


def test_every_finished_job_can_come_back_only_by_a_retry() -> None:
    for status in FINISHED:
        assert MOVES[status].keys() == {Status.PENDING, Status.BLOCKED}

"""judge: what a hand-in does to the job that stands under its key."""

import pytest

from windlass.core.idempotency import OnConflict, Verdict, judge
from windlass.core.status import FINISHED, LIVE, WAITING, Status


@pytest.mark.parametrize("status", [*sorted(LIVE), None])
def test_by_default_the_job_that_stands_is_the_answer(status: Status | None) -> None:
    assert judge(status, OnConflict.EXISTING) is Verdict.ANSWER


@pytest.mark.parametrize("status", [*sorted(LIVE), None])
def test_raise_is_for_whoever_stands(status: Status | None) -> None:
    assert judge(status, OnConflict.RAISE) is Verdict.REFUSE


def test_only_a_waiting_job_is_replaced() -> None:
    replaced = {status for status in Status if judge(status, OnConflict.REPLACE) is Verdict.REPLACE}
    assert replaced == WAITING
    assert judge(None, OnConflict.REPLACE) is Verdict.ANSWER
    assert not replaced & FINISHED

"""decide_key: what an enqueue does to the job that stands under its key."""

import pytest

from windlass.core.jobs.idempotency import KeyDecision, OnConflict, decide_key
from windlass.core.status import FINISHED, LIVE, WAITING, Status


@pytest.mark.parametrize("status", [*sorted(LIVE), None])
def test_by_default_the_existing_job_is_the_answer(status: Status | None) -> None:
    assert decide_key(status, OnConflict.EXISTING) is KeyDecision.RETURN_EXISTING


@pytest.mark.parametrize("status", [*sorted(LIVE), None])
def test_raise_applies_while_a_job_has_the_key(status: Status | None) -> None:
    assert decide_key(status, OnConflict.RAISE) is KeyDecision.REFUSE


def test_only_a_waiting_job_is_replaced() -> None:
    replaced = {status for status in Status if decide_key(status, OnConflict.REPLACE) is KeyDecision.REPLACE}
    assert replaced == WAITING
    assert decide_key(None, OnConflict.REPLACE) is KeyDecision.RETURN_EXISTING
    assert not replaced & FINISHED

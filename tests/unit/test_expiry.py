"""Expiry: when a job's time to start is over."""

import pytest

from tests.support.seed import new_job
from windlass.core.jobs.admission import expires_instead, expiry, is_expired
from windlass.core.status import FINISHED, Status


@pytest.mark.parametrize(
    ("fields", "moment"),
    [({}, None), ({"expires": 5}, 105), ({"expires_at": 7}, 7), ({"expires": 5, "expires_at": 7}, 7)],
)
def test_a_moment_wins_over_a_time_from_now(fields: dict[str, int], moment: int | None) -> None:
    assert expiry(new_job(**fields), 100) == moment


def test_a_job_is_expired_from_its_moment_on() -> None:
    assert [is_expired(5, now) for now in (4, 5, 6)] == [False, True, True]
    assert not is_expired(None, 10**18)


def test_what_has_ended_does_not_expire() -> None:
    assert {status for status in Status if not expires_instead(status, 5, 5)} == FINISHED
    assert not [status for status in Status if expires_instead(status, 5, 4) or expires_instead(status, None, 5)]

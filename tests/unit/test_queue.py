"""Queue settings, and the first status of a job."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.flow.queue import DEFAULT_RETENTION, Queue, QueueSettings, check_attempts, merge, settings
from windlass.core.jobs.admission import initial_state
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.retry import DEFAULT_POLICY, Fixed, Linear
from windlass.core.moments import DAY, MAX_DURATION, MAX_TIME, SECOND
from windlass.core.status import Status
from windlass.errors import InvalidOption, InvalidTime, WindlassError


def test_without_a_word_the_defaults_hold() -> None:
    rules = merge(QueueSettings(), QueueSettings())
    assert (rules.max_attempts, rules.retry, rules.retention) == (3, DEFAULT_POLICY, DEFAULT_RETENTION)


def test_the_operators_word_wins_over_the_codes_field_by_field() -> None:
    declared = settings(max_attempts=5, retry=Fixed(), retention={"dead": 1, "completed": 2})
    changed = settings(retry=Linear(), retention={"dead": 9})
    rules = merge(declared, changed)
    assert (rules.max_attempts, rules.retry) == (5, Linear())
    assert rules.retention == {Status.DEAD: 9 * SECOND, Status.COMPLETED: 2 * SECOND, Status.CANCELLED: 7 * DAY}


def test_a_retention_of_nothing_is_a_word_too() -> None:
    rules = merge(settings(retention={"completed": 5}), settings(retention={"completed": 0}))
    assert rules.retention[Status.COMPLETED] == 0


def test_a_policy_brings_its_budget_unless_one_is_given() -> None:
    assert merge(settings(retry=Fixed(attempts=8)), QueueSettings()).max_attempts == 8
    assert merge(settings(retry=Fixed(attempts=8), max_attempts=2), QueueSettings()).max_attempts == 2


def test_a_queue_tells_what_holds() -> None:
    queue = Queue(name="q", declared=settings(max_attempts=5), changed=settings(max_attempts=6))
    assert queue.rules.max_attempts == 6


def test_settings_survive_being_stored() -> None:
    given_ = settings(max_attempts=5, retry=Linear(base=3), retention={"dead": timedelta(days=1)})
    assert msgspec.json.decode(msgspec.json.encode(given_), type=QueueSettings) == given_


@pytest.mark.parametrize("bad", [0, -1, 1001, 10**9, 1.0, "3", True])
def test_a_budget_out_of_range_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidOption, match="max_attempts"):
        settings(max_attempts=bad)


@pytest.mark.parametrize("good", [1, 3, 1000])
def test_a_budget_within_its_range_is_taken(good: int) -> None:
    assert check_attempts(good) == good


@pytest.mark.parametrize(
    ("retention", "error"),
    [
        ({"pending": 5}, InvalidOption),
        ({"nonsense": 5}, InvalidOption),
        ({"dead": -1}, InvalidTime),
        ({"dead": float("inf")}, InvalidTime),
        ({"dead": "soon"}, InvalidTime),
        ({"dead": None}, InvalidTime),
    ],
)
def test_a_retention_that_cannot_be_is_refused(retention: Any, error: type[WindlassError]) -> None:
    with pytest.raises(error, match="retention"):
        settings(retention=retention)


moments = st.integers(0, MAX_TIME)


@given(run_at=st.none() | moments, delay=st.integers(0, MAX_DURATION), now=moments)
def test_a_job_waits_exactly_while_its_time_is_to_come_and_its_rank_is_never_past(
    run_at: int | None, delay: int, now: int
) -> None:
    born = initial_state(NewJob(id="i", type="t", payload="{}", run_at=run_at, delay=delay), now)
    assert born.run_at == (now + delay if run_at is None else run_at)
    assert (born.status is Status.SCHEDULED) == (born.run_at > now)
    assert born.status in (Status.SCHEDULED, Status.PENDING)
    assert born.rank == max(born.run_at, now)


@pytest.mark.parametrize(("last", "rank"), [(None, 100), (99, 100), (100, 100), (101, 102), (10**15, 10**15 + 1)])
def test_a_job_is_placed_behind_the_last_that_waits_even_if_the_clock_was_set_back(
    last: int | None, rank: int
) -> None:
    assert initial_state(NewJob(id="i", type="t", payload="{}"), 100, last).rank == rank


def test_a_job_that_is_not_due_does_not_wait_for_its_key_yet() -> None:
    assert initial_state(NewJob(id="i", type="t", payload="{}", delay=50), 100, 10**15).rank == 150

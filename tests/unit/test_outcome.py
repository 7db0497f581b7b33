"""decide and after_crash: every outcome has its settlement."""

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.outcome import (
    CRASH_LIMIT,
    Done,
    OtherVersion,
    Policy,
    Raised,
    Requeued,
    Settlement,
    after_crash,
    decide,
)
from windlass.core.jobs.retry import ByError, Exponential, Fixed, RetryPolicy, Steps, add_to_meta
from windlass.core.moments import MAX_DURATION, SECOND
from windlass.core.status import FINISHED, Status, may_move
from windlass.errors import InvalidTime

REPORT = JobError("E", "text")


def claimed(**fields: Any) -> Claimed:
    numbers: Mapping[str, int] = dict.fromkeys(
        (
            "failures",
            "crashes",
            "rescues",
            "suspicions",
            "requeues",
            "snoozes",
            "priority",
            "run_at",
            "created_at",
            "claimed_at",
        ),
        0,
    )
    named = {"id": "i", "queue": "q", "type": "t", "payload": "{}", "attempt": 1, "max_attempts": 3}
    return Claimed(**{**named, **numbers, **fields})


def raised(error: BaseException, retry: RetryPolicy | None = None, dead_on: Any = (), **fields: Any) -> Settlement:
    policy = Policy(retry or Fixed(base=60, jitter=0), dead_on)
    return decide(claimed(**fields), Raised(error, REPORT), policy, Random(0))


class Moody:
    """A policy of the program, which is not what it should be."""

    attempts = 3

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def seconds(self, failures: int, random: Random) -> float:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_a_return_is_a_completion() -> None:
    settlement = decide(claimed(attempt=4), Done("7"), Policy(Fixed()), Random(0))
    assert (settlement.status, settlement.outcome, settlement.result) == (Status.COMPLETED, "completed", "7")
    assert (settlement.id, settlement.queue, settlement.attempt) == ("i", "q", 4)


def test_a_requeue_costs_nothing() -> None:
    settlement = decide(claimed(), Requeued(), Policy(Fixed()), Random(0))
    assert (settlement.status, settlement.requeues, settlement.failures) == (Status.PENDING, 1, 0)


def test_a_job_for_another_version_comes_back_after_a_pause_that_grows_and_costs_nothing() -> None:
    def left(requeues: int) -> Settlement:
        return decide(claimed(requeues=requeues), OtherVersion(("b", "c")), Policy(Fixed()), Random(0))

    first = left(0)
    assert (first.status, first.outcome, first.requeues, first.failures) == (Status.SCHEDULED, "requeued", 1, 0)
    assert first.reason == "left to a worker whose version of the task has b, c"
    assert [left(times).delay / left(0).delay for times in (0, 1, 2, 4, 10**6)] == pytest.approx([1, 2, 4, 16, 16])
    assert 0.9 * SECOND <= left(0).delay <= 1.1 * SECOND


def test_an_error_is_retried_by_the_policy() -> None:
    settlement = raised(ValueError(), Exponential(base=10, jitter=0), failures=1)
    assert (settlement.status, settlement.delay, settlement.failures) == (Status.FAILED, 20 * SECOND, 1)
    assert settlement.error == REPORT


@pytest.mark.parametrize(("failures", "crashes"), [(2, 0), (0, 2), (1, 1), (5, 5)])
def test_the_budget_is_spent_by_failures_and_crashes_together(failures: int, crashes: int) -> None:
    assert raised(ValueError(), failures=failures, crashes=crashes).status is Status.DEAD


def test_hand_backs_snoozes_and_rescues_spend_nothing() -> None:
    assert raised(ValueError(), requeues=9, snoozes=9, rescues=9, attempt=28).status is Status.FAILED


def test_an_error_that_is_not_retried_is_dead_at_once() -> None:
    settlement = raised(KeyError("x"), dead_on=(LookupError,))
    assert (settlement.status, settlement.reason) == (Status.DEAD, "KeyError is not retried")


@pytest.mark.parametrize(
    ("after", "micros"), [(5, 5 * SECOND), (timedelta(minutes=1), 60 * SECOND), ("2m", 120 * SECOND), (0, 0)]
)
def test_a_handler_says_when_to_retry(after: Any, micros: int) -> None:
    assert raised(Retry(after=after)).delay == micros


def test_a_retry_without_a_time_waits_as_the_policy_says_and_spends_the_budget() -> None:
    assert raised(Retry()).delay == 60 * SECOND
    assert raised(Retry(after=5), failures=2).status is Status.DEAD


def test_a_snooze_spends_nothing() -> None:
    settlement = raised(Snooze(5), failures=2)
    assert (settlement.status, settlement.delay) == (Status.SCHEDULED, 5 * SECOND)
    assert (settlement.snoozes, settlement.failures, settlement.error) == (1, 0, None)


def test_cancel_and_dead_keep_their_reasons() -> None:
    assert (raised(Cancel("late")).status, raised(Cancel("late")).reason) == (Status.CANCELLED, "late")
    assert (raised(Dead("bad")).status, raised(Dead("bad")).reason) == (Status.DEAD, "bad")


NONSENSE = [-1, float("nan"), "soon", object(), 10**400]


@pytest.mark.parametrize("wait", NONSENSE)
def test_a_wait_that_is_nonsense_is_refused_where_it_is_said(wait: Any) -> None:
    with pytest.raises(InvalidTime, match=r"^delay: "):
        Snooze(wait)
    with pytest.raises(InvalidTime, match=r"^after: "):
        Retry(after=wait)


@pytest.mark.parametrize("wait", NONSENSE)
def test_a_wait_that_was_made_nonsense_later_is_no_reason_to_lose_the_job(wait: Any) -> None:
    snooze, retry = Snooze(5), Retry(after=5)
    snooze.delay = retry.after = wait
    assert raised(snooze).status is Status.SCHEDULED
    assert raised(retry).status is Status.FAILED


def test_the_policy_of_the_job_goes_before_that_of_its_task() -> None:
    meta = add_to_meta('{"by":"me"}', Steps("10s", "2m", jitter=0))
    assert raised(ValueError(), meta=meta).delay == 10 * SECOND
    assert raised(ValueError(), meta=meta, failures=1).delay == 120 * SECOND
    assert raised(KeyError(), meta=meta, dead_on=(LookupError,)).status is Status.DEAD


@pytest.mark.parametrize("meta", ['{"windlass.retry":5}', '{"windlass.retry":', '{"windlass.retry":{"type":"Moon"}}'])
def test_a_policy_of_the_job_that_cannot_be_read_leaves_that_of_its_task(meta: str) -> None:
    assert raised(ValueError(), meta=meta).delay == 60 * SECOND


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), -5, "x", None, 1e300, ZeroDivisionError()])
def test_a_policy_that_misbehaves_is_no_reason_to_lose_the_job(answer: Any) -> None:
    settlement = raised(ValueError(), ByError({ValueError: Moody(answer)}))
    assert settlement.status is Status.FAILED
    assert 0 <= settlement.delay <= MAX_DURATION


@pytest.mark.parametrize("control", [Cancel, Dead])
@pytest.mark.parametrize("reason", [None, 7, Unspeakable(), "x" * 10**6, "\ud800", "a\x00b"])
def test_a_reason_becomes_bounded_text_that_every_store_can_keep(control: Any, reason: Any) -> None:
    text = raised(control(reason)).reason
    assert isinstance(text, str)
    assert len(text.encode()) <= 4096
    assert "\x00" not in text


waits = st.floats(0, 3e9) | st.timedeltas(timedelta(0), timedelta(days=36_500)) | st.sampled_from(["5", "30s", "2h"])
errors = st.one_of(
    st.builds(Snooze, waits),
    st.builds(Retry, st.none() | waits),
    st.builds(Cancel, st.text()),
    st.builds(Dead, st.text()),
    st.sampled_from(
        [ValueError(), KeyError("x"), SystemExit(1), KeyboardInterrupt(), MemoryError(), BaseException()]
    ),
)
counts = st.integers(0, 2000)


@given(
    outcome=st.builds(Done, st.none() | st.text()) | st.builds(Requeued) | st.builds(Raised, errors, st.just(REPORT)),
    retry=st.sampled_from([Exponential(), Fixed(base=0), ByError({KeyError: Fixed()})]),
    dead_on=st.sampled_from([(), (ValueError,), (BaseException,)]),
    failures=counts,
    crashes=counts,
    max_attempts=st.integers(1, 1000),
    key=st.none() | st.text(min_size=1),
)
def test_every_outcome_has_a_legal_settlement(
    outcome: Any, retry: Any, dead_on: Any, failures: int, crashes: int, max_attempts: int, key: str | None
) -> None:
    job = claimed(failures=failures, crashes=crashes, max_attempts=max_attempts, idempotency_key=key)
    settlement = decide(job, outcome, Policy(retry, dead_on), Random(0))
    assert may_move(Status.RUNNING, settlement.status)
    assert 0 <= settlement.delay <= MAX_DURATION
    assert settlement.keyed is (key is not None)
    assert settlement.delay == 0 or settlement.status in (Status.FAILED, Status.SCHEDULED)
    assert settlement.failures + settlement.snoozes + settlement.requeues <= 1


def test_a_crash_among_several_is_counted_for_none() -> None:
    fate = after_crash(failures=9, crashes=9, max_attempts=1, suspects=2)
    assert (fate.status, fate.crashes, fate.suspicions) == (Status.PENDING, 0, 1)


def test_a_crash_while_alone_is_the_jobs_own() -> None:
    fate = after_crash(failures=0, crashes=0, max_attempts=3, suspects=1)
    assert (fate.status, fate.crashes, fate.suspicions) == (Status.PENDING, 1, 0)


@pytest.mark.parametrize(
    ("failures", "crashes", "most"), [(0, CRASH_LIMIT - 1, 1000), (0, 0, 1), (2, 0, 3), (1, 1, 3)]
)
def test_a_crash_at_the_limit_or_the_end_of_the_budget_is_death(failures: int, crashes: int, most: int) -> None:
    fate = after_crash(failures=failures, crashes=crashes, max_attempts=most, suspects=1)
    assert (fate.status, fate.outcome) == (Status.DEAD, "crashed")
    assert fate.reason


@given(failures=counts, crashes=counts, max_attempts=st.integers(1, 1000), suspects=st.integers(1, 50))
def test_every_crash_has_a_legal_fate(failures: int, crashes: int, max_attempts: int, suspects: int) -> None:
    fate = after_crash(failures=failures, crashes=crashes, max_attempts=max_attempts, suspects=suspects)
    assert may_move(Status.RUNNING, fate.status)
    assert (fate.status in FINISHED) == (fate.reason is not None)
    assert fate.crashes + fate.suspicions + fate.rescues + fate.requeues == 1

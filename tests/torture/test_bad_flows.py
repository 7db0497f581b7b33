"""Flow control in histories made by hand: those that keep to limits, rates, order and shares pass, others do not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.torture.test_checker import OTHER, RUNNER, Tale
from windlass.core.jobs.change import WAITING_FOR_KEY

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds: float) -> str:
    return (BEGINNING + timedelta(seconds=seconds)).isoformat()


class Flow(Tale):
    """Jobs whose attempts the store has stamped, in seconds from the beginning."""

    def arrive(self, job: str, at: float = 0, **fields: Any) -> None:
        self.enqueue(job, **{name: fields[name] for name in ("concurrency_key", "tenant") if name in fields})
        self.keep(job, created_at=moment(at), **{"queue": "q", **fields})

    def held(self, job: str, start: float, end: float, attempt: int = 1, status: str = "completed") -> None:
        """An attempt from its claim to its end."""
        self.claim(job, attempt)
        self.start(job, attempt)
        self.end(job, attempt, outcome="Done" if status == "completed" else "Raised")
        self.settle(job, attempt, status=status)
        span = {"attempt": attempt, "claimed_at": moment(start), "ended_at": moment(end)}
        self.keep(job, attempts=[*self.jobs[job]["attempts"], span], finished_at=moment(end))
        if status == "failed":
            self.keep(job, failures=self.jobs[job].get("failures", 0) + 1)

    def under(self, key: str, job: str, start: float, end: float, **fields: Any) -> None:
        """One of a key, enqueued and run."""
        self.arrive(job, concurrency_key=key, **fields)
        self.held(job, start, end)


# Good ones.


def one_after_the_other_under_a_key(flow: Flow) -> None:
    flow.under("k", "a", 0, 1)
    flow.under("k", "b", 1, 2)
    flow.under("l", "c", 0.5, 1.5)


def two_at_once_under_a_key_for_two(flow: Flow) -> None:
    flow.under("k", "a", 0, 2, key_limit=2)
    flow.under("k", "b", 1, 3, key_limit=2)
    flow.under("k", "c", 2, 4, key_limit=2)


def a_burst_and_then_the_rate(flow: Flow) -> None:
    flow.say("rules", queue="q", rate="2/s burst 3")
    for number, at in enumerate([0, 0, 0, 0.5, 1.0, 1.5, 10, 10, 10]):
        flow.arrive(f"j{number}")
        flow.held(f"j{number}", at, at + 0.1)


def strict_order_through_a_failure(flow: Flow) -> None:
    for job in ("a", "b"):
        flow.arrive(job, concurrency_key="k", key_strict=True)
    flow.held("a", 0, 1, status="failed")
    flow.held("a", 5, 6, attempt=2)
    flow.held("b", 6, 7)


def a_job_waits_behind_a_holder(flow: Flow) -> None:
    flow.arrive("a", concurrency_key="k", status="pending")
    flow.arrive("b", concurrency_key="k", status="blocked", reason=WAITING_FOR_KEY)


def behind_one_of_strict_order_that_waits_to_be_tried_again(flow: Flow) -> None:
    flow.arrive("a", concurrency_key="k", key_strict=True)
    flow.held("a", 0, 1, status="failed")
    flow.arrive("b", concurrency_key="k", key_strict=True, status="blocked", reason=WAITING_FOR_KEY)


def _tenants(flow: Flow, order: str, jobs: int = 40) -> None:
    """As many of each, and claims in this order."""
    flow.say("rules", queue="q", fair=True, weights={"A": 2.0, "B": 1.0}, deep=5)
    for tenant in "AB":
        for number in range(jobs):
            flow.arrive(f"{tenant}{number}", tenant=tenant)
    for at, tenant in enumerate(order):
        number = order[:at].count(tenant)
        flow.held(f"{tenant}{number}", at + 1, at + 1.5)


def tenants_by_their_weights(flow: Flow) -> None:
    _tenants(flow, "AABABAAAB" * 3)


def a_tenant_without_pending_jobs_gets_nothing(flow: Flow) -> None:
    flow.say("rules", queue="q", fair=True, deep=5)
    for number in range(30):
        flow.arrive(f"a{number}", tenant="A")
        flow.held(f"a{number}", number, number + 0.5)
    flow.arrive("b", at=29, tenant="B")


GOOD: list[Callable[[Flow], None]] = [
    one_after_the_other_under_a_key,
    two_at_once_under_a_key_for_two,
    a_burst_and_then_the_rate,
    strict_order_through_a_failure,
    a_job_waits_behind_a_holder,
    behind_one_of_strict_order_that_waits_to_be_tried_again,
    tenants_by_their_weights,
    a_tenant_without_pending_jobs_gets_nothing,
]


# Bad ones.


def two_run_under_one_key(flow: Flow) -> None:
    flow.under("k", "a", 0, 2)
    flow.under("k", "b", 1.999, 3)


def three_run_under_a_key_for_two(flow: Flow) -> None:
    two_at_once_under_a_key_for_two(flow)
    flow.under("k", "d", 2.5, 2.6, key_limit=2)


def a_slot_is_given_away_before_its_holder_was_rescued(flow: Flow) -> None:
    for job in ("a", "b"):
        flow.arrive(job, concurrency_key="k")
    flow.claim("a")
    flow.start("a")
    flow.fault(RUNNER)
    flow.held("b", 5, 6)
    flow.rescue("a")
    flow.run("a", 2, OTHER)
    flow.keep(
        "a",
        attempts=[
            {"attempt": 1, "claimed_at": moment(0), "ended_at": moment(9)},
            {"attempt": 2, "claimed_at": moment(10), "ended_at": moment(11)},
        ],
    )


def a_queue_runs_more_than_it_may(flow: Flow) -> None:
    flow.say("rules", queue="q", max_concurrency=2)
    for job in ("a", "b", "c"):
        flow.arrive(job)
        flow.held(job, 0, 1)


def a_queue_starts_more_than_its_rate_and_its_burst(flow: Flow) -> None:
    a_burst_and_then_the_rate(flow)
    flow.arrive("more")
    flow.held("more", 10.4, 11)


def a_key_starts_faster_than_it_may(flow: Flow) -> None:
    for number, at in enumerate([0, 1, 1.9]):
        flow.under("k", f"j{number}", at, at + 0.1, key_rate="1/s")


def a_dear_job_starts_without_its_tokens(flow: Flow) -> None:
    flow.say("rules", queue="q", rate="10/s")
    for number, at in enumerate([0, 0.5]):
        flow.arrive(f"j{number}", rate_cost=8)
        flow.held(f"j{number}", at, at + 0.1)


def a_job_overtakes_under_a_strict_key(flow: Flow) -> None:
    for job in ("a", "b"):
        flow.arrive(job, concurrency_key="k", key_strict=True)
    flow.held("b", 0, 1)
    flow.held("a", 1, 2)


def a_job_overtakes_the_first_that_waits_for_its_retry(flow: Flow) -> None:
    for job in ("a", "b"):
        flow.arrive(job, concurrency_key="k", key_strict=True)
    flow.held("a", 0, 1, status="failed")
    flow.held("b", 2, 3)
    flow.held("a", 5, 6, attempt=2)


def a_key_is_free_and_a_job_waits_for_it(flow: Flow) -> None:
    flow.under("k", "a", 0, 1)
    flow.arrive("b", concurrency_key="k", status="blocked", reason=WAITING_FOR_KEY)


def one_slot_of_two_is_lost(flow: Flow) -> None:
    flow.arrive("a", concurrency_key="k", key_limit=2, status="pending")
    flow.arrive("b", concurrency_key="k", key_limit=2, status="blocked", reason=WAITING_FOR_KEY)


def a_failed_job_without_strict_order_keeps_its_slot(flow: Flow) -> None:
    flow.arrive("a", concurrency_key="k")
    flow.held("a", 0, 1, status="failed")
    flow.arrive("b", concurrency_key="k", status="blocked", reason=WAITING_FOR_KEY)


def one_tenant_gets_all(flow: Flow) -> None:
    _tenants(flow, "A" * 30)


def weights_are_ignored(flow: Flow) -> None:
    _tenants(flow, "AB" * 15)


BAD: list[tuple[str, Callable[[Flow], None]]] = [
    ("I8", a_job_overtakes_under_a_strict_key),
    ("I8", a_job_overtakes_the_first_that_waits_for_its_retry),
    ("I11", two_run_under_one_key),
    ("I11", three_run_under_a_key_for_two),
    ("I11", a_slot_is_given_away_before_its_holder_was_rescued),
    ("I11", a_queue_runs_more_than_it_may),
    ("I12", a_queue_starts_more_than_its_rate_and_its_burst),
    ("I12", a_key_starts_faster_than_it_may),
    ("I12", a_dear_job_starts_without_its_tokens),
    ("I15", a_key_is_free_and_a_job_waits_for_it),
    ("I15", one_slot_of_two_is_lost),
    ("I15", a_failed_job_without_strict_order_keeps_its_slot),
    ("I18", one_tenant_gets_all),
    ("I18", weights_are_ignored),
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_good_flow_passes(good: Callable[[Flow], None]) -> None:
    flow = Flow()
    good(flow)
    report = flow.judge()
    assert not {"I8", "I11", "I12", "I15", "I18"} & report.laws, str(report)


@pytest.mark.parametrize(("law", "bad"), BAD, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_a_bad_flow_is_caught_by_the_law_that_it_breaks(law: str, bad: Callable[[Flow], None]) -> None:
    flow = Flow()
    bad(flow)
    report = flow.judge()
    assert law in report.laws, str(report)

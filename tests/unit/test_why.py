"""Why a job does not run: every reason that there is, and an answer whatever the circumstances."""

import re
from datetime import datetime
from typing import Any

import pytest

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.flow.rate import TokenBucket, parse_rate
from windlass.core.ids import new_id
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY
from windlass.core.jobs.job import Job, JobError, Progress
from windlass.core.moments import DAY, SECOND, Micros, to_datetime
from windlass.core.stats.meter import histogram
from windlass.core.status import Status
from windlass.core.why.explain import explain
from windlass.core.why.facts import Count, Holder, QueuePosition, WhyFacts, WorkerSummary

NOW: Micros = 1_800_000_000 * SECOND
ID = new_id()
WORKERS = WorkerSummary(alive=1, know=1, serve=1, able=1, slots=10)


def moment(seconds: float) -> datetime:
    """So long after now."""
    return to_datetime(NOW + round(seconds * SECOND))


def job(status: Status = Status.PENDING, **fields: Any) -> Job:
    given = {"type": "t", "queue": "mail", "payload": {}, "created_at": moment(-9), "updated_at": moment(-1)}
    return Job(id=ID, status=status, **{**given, "run_at": moment(-9), **fields})


def around(its: Job, **facts: Any) -> WhyFacts:
    return WhyFacts(**{"now": NOW, "job": its, "queue": Queue(name="mail"), "workers": WORKERS, **facts})


def codes(facts: WhyFacts) -> list[str]:
    return [reason.code for reason in explain(facts).reasons]


def limited(**settings: Any) -> Queue:
    return Queue(name="mail", changed=QueueSettings(**settings))


def test_a_paused_queue_says_how_it_is_resumed() -> None:
    why = explain(around(job(), queue=Queue(name="mail", paused=True)))
    assert (why.first.code, why.first.do) == ("paused", "windlass queues resume mail")
    assert why.first.text == "Queue mail is paused until it is resumed."
    assert why.estimated_start is None
    assert why.basis == "queue mail is paused without an end"


def test_a_pause_with_an_end_says_when() -> None:
    until = moment(90)
    why = explain(around(job(), queue=Queue(name="mail", paused=True, paused_until=until)))
    assert (why.first.code, why.first.until) == ("paused", until)
    assert "in 1m 30s" in why.first.text
    assert why.earliest == until


def test_a_closed_queue_holds_nothing_that_is_there() -> None:
    why = explain(around(job(), queue=Queue(name="mail", closed=True)))
    assert [reason.code for reason in why.reasons] == ["next", "closed"]


def test_a_job_that_is_not_due_says_when_and_how_to_run_it_now() -> None:
    why = explain(around(job(Status.SCHEDULED, run_at=moment(3600))))
    assert (why.first.code, why.first.until) == ("not_due", moment(3600))
    assert why.first.do == f"to run it now: windlass jobs run {ID}"
    assert why.earliest == moment(3600)


def test_a_moment_on_another_day_has_its_date() -> None:
    why = explain(around(job(Status.SCHEDULED, run_at=moment(2 * 86_400))))
    assert moment(2 * 86_400).strftime("%Y-%m-%d %H:%M:%S") in why.first.text


def test_a_failed_job_says_why_it_failed_and_when_it_is_tried_again() -> None:
    error = JobError("ValueError", "no such user\nat all")
    its = job(Status.FAILED, run_at=moment(30), error=error, attempt=2, failures=2, max_attempts=5)
    first = explain(around(its)).first
    assert first.code == "retry_wait"
    assert "Attempt 2 failed after ValueError: no such user;" in first.text
    assert "2 of 5 used" in first.text


def test_what_is_overdue_says_that_nothing_fires_it() -> None:
    why = explain(around(job(Status.SCHEDULED, run_at=moment(-60))))
    assert why.first.code == "not_admitted"
    assert "windlass coordinator" in (why.first.do or "")


@pytest.mark.parametrize(
    ("workers", "code", "said"),
    [
        (WorkerSummary(), "no_worker", "No worker is alive."),
        (WorkerSummary(alive=2, serve=2), "no_worker", "None of the 2 live workers knows the type t."),
        (
            WorkerSummary(alive=2, know=1, serve=1),
            "no_worker_serves_queue",
            "1 live worker knows the type t, but does not serve queue mail.",
        ),
        (
            WorkerSummary(alive=3, know=2),
            "no_worker_serves_queue",
            "2 live workers know the type t, but none of them serves queue mail.",
        ),
        (
            WorkerSummary(alive=1, know=1, serve=1, draining=1),
            "workers_draining",
            "1 live worker that would take it is stopping.",
        ),
    ],
)
def test_without_a_worker_that_would_take_it_it_says_which_is_missing(
    workers: WorkerSummary, code: str, said: str
) -> None:
    why = explain(around(job(), workers=workers))
    assert (why.first.code, why.first.text) == (code, said)
    assert re.search(
        "windlass worker module:app --queues mail|whose app has it, serving queue mail", why.first.do or ""
    )
    assert why.basis == "no live worker would take it"


def test_a_parked_job_says_that_no_worker_knows_its_type() -> None:
    parked = job(Status.BLOCKED, reason=NO_WORKER)
    assert codes(around(parked, workers=WorkerSummary(alive=1, serve=1))) == ["parked"]
    assert "will free it" in explain(around(parked)).first.text


def test_a_limit_names_its_holders() -> None:
    runners = (Holder("a", Status.RUNNING, NOW - 90 * SECOND, NOW - 99 * SECOND, "r"),)
    place = QueuePosition(running=Count(2))
    first = explain(around(job(), queue=limited(max_concurrency=2), position=place, runners=runners)).first
    assert (first.code, first.jobs, first.count) == ("concurrency_limit", ("a",), 2)
    assert "its limit is 2 at once. Longest: a (running for 1m 30s)." in first.text
    assert first.do == "to let more run: windlass queues set mail --max-concurrency N"
    assert codes(around(job(), queue=limited(max_concurrency=3), position=place)) == ["next"]


def test_a_rate_says_when_tokens_come() -> None:
    queue = limited(rate_limit=parse_rate("1/m", "rate"))
    empty = TokenBucket(0, 60 * SECOND, NOW - 20 * SECOND)
    why = explain(around(job(), queue=queue, queue_token_bucket=empty))
    assert (why.first.code, why.first.until) == ("rate_limit", moment(40))
    assert why.earliest == moment(40)
    assert codes(around(job(), queue=queue)) == ["next"], "an unused token bucket is full"


def test_a_job_that_costs_more_waits_for_more() -> None:
    queue = limited(rate_limit=parse_rate("1/s burst 10", "rate"))
    token_bucket = TokenBucket(2 * SECOND, SECOND, NOW)
    why = explain(around(job(rate_cost=5), queue=queue, queue_token_bucket=token_bucket))
    assert why.first.until == moment(3)


def test_a_rate_of_its_key_says_when() -> None:
    its = job(concurrency_key="k", key_rate="1/m")
    why = explain(around(its, key_token_bucket=TokenBucket(0, 60 * SECOND, NOW)))
    assert (why.first.code, why.first.until) == ("key_rate", moment(60))


def test_a_job_that_could_not_pay_its_key_says_when() -> None:
    its = job(
        Status.SCHEDULED, concurrency_key="k", key_rate="1/m", run_at=moment(40), reason="rate limit of its key"
    )
    first = explain(around(its)).first
    assert (first.code, first.until) == ("key_rate", moment(40))
    assert "1/m of key 'k'" in first.text


def test_a_rate_edited_to_be_unreadable_is_none() -> None:
    assert codes(around(job(concurrency_key="k", key_rate="often"))) == ["next"]


def test_a_key_that_is_held_names_its_holder_and_how_many_wait_before() -> None:
    its = job(Status.BLOCKED, reason=WAITING_FOR_KEY, concurrency_key="customer 7", key_limit=1)
    holders = (Holder("h", Status.FAILED, NOW - 5 * SECOND, NOW + 30 * SECOND),)
    place = QueuePosition(ahead_for_key=Count(1000, at_least=True), slots=Count(1))
    why = explain(around(its, holders=holders, position=place))
    first = why.first
    assert (first.code, first.jobs, first.count, first.at_least) == ("key_held", ("h",), 1000, True)
    assert "Key 'customer 7' is held by h (failed 5s ago, next try in 30s)." in first.text
    assert "1,000+ jobs are before it." in first.text
    assert why.earliest == moment(30)


def test_of_many_holders_some_are_named_and_the_rest_counted() -> None:
    its = job(Status.BLOCKED, reason=WAITING_FOR_KEY, concurrency_key="k", key_limit=7)
    holders = tuple(Holder(str(n), Status.RUNNING, NOW, NOW) for n in range(5))
    text = explain(around(its, holders=holders, position=QueuePosition(slots=Count(7)))).first.text
    assert text.startswith("All 7 slots of key 'k' are held by 0 (running for 0s);")
    assert "; and 2 more. It is next." in text


def test_a_job_behind_others_says_how_many() -> None:
    why = explain(around(job(), position=QueuePosition(ahead=Count(10_000, at_least=True))))
    assert (why.first.code, why.first.text) == ("behind", "10,000+ jobs are before it in queue mail.")
    assert f"windlass jobs change {ID} --priority" in (why.first.do or "")


def test_a_job_in_a_fair_queue_is_behind_its_own_tenants_jobs() -> None:
    place = QueuePosition(ahead=Count(900), higher_priority=Count(3), same_tenant=Count(4), tenants=("a", "b", "c"))
    first = explain(around(job(tenant="a"), queue=limited(fair=True), position=place)).first
    assert (first.code, first.count) == ("behind", 4)
    assert "4 jobs of tenant a before it, 2 other tenants wait, and 3 jobs have a higher priority." in first.text


def test_a_job_that_nothing_holds_is_next_until_that_is_strange() -> None:
    assert explain(around(job())).first.do is None
    assert explain(around(job(updated_at=moment(-60)))).first.do == "windlass doctor"


def test_the_next_job_waits_for_a_free_slot_from_the_first_moment_on() -> None:
    busy = WorkerSummary(alive=1, know=1, serve=1, able=1, slots=10, busy=10)
    for updated in (0, -60):
        assert codes(around(job(updated_at=moment(updated)), workers=busy)) == ["workers_busy"]


def test_a_job_that_expires_says_when_and_whether_it_will_come_so_far() -> None:
    why = explain(around(job(Status.SCHEDULED, run_at=moment(90), expires_at=moment(60))))
    assert [reason.code for reason in why.reasons] == ["not_due", "expires"]
    assert why.reasons[1].text.endswith("It is not expected to start before.")


def test_what_needs_an_operator_is_said_first_unless_the_time_is_far_off() -> None:
    soon, later = (job(Status.SCHEDULED, run_at=moment(seconds)) for seconds in (30, 3600))
    assert codes(around(soon, workers=WorkerSummary())) == ["no_worker", "not_due"]
    assert codes(around(later, workers=WorkerSummary())) == ["not_due", "no_worker"]


def ran(seconds: float, **fields: Any) -> Job:
    given = {"worker": "r1", "attempt": 1, "claimed_at": moment(-seconds), "started_at": moment(-seconds)}
    return job(Status.RUNNING, **{**given, "lease_expires_at": moment(20), **fields})


def test_a_running_job_says_since_when_and_on_which_runner_against_its_usual_time() -> None:
    usual = histogram([2 * SECOND] * 90 + [3 * SECOND] * 10)
    first = explain(around(ran(4), typical_duration=usual, worker="w1")).first
    assert first.code == "running"
    assert "It has run for 4s in runner r1 of worker w1, attempt 1; its type usually takes 2" in first.text
    long = explain(around(ran(240, timeout=300.0), typical_duration=usual)).first
    assert (long.code, long.do) == ("running_long", f"to stop it: windlass jobs cancel {ID}")
    assert "It may take 5m, then it is stopped." in long.text


def test_a_running_job_without_a_usual_time_says_so() -> None:
    assert "nothing of its type ended in the last hour" in explain(around(ran(4))).first.text


def test_a_short_job_is_not_called_long_within_seconds() -> None:
    assert codes(around(ran(5), typical_duration=histogram([100]))) == ["running"]


def test_a_job_that_was_claimed_ahead_says_so() -> None:
    assert codes(around(ran(4, started_at=None))) == ["claimed"]


def test_a_running_job_that_was_asked_to_stop_or_whose_lease_is_over_says_so_first() -> None:
    facts = around(ran(4, cancel_requested=True, reason="unwanted", lease_expires_at=moment(-3)))
    assert codes(facts) == ["lease_over", "stopping", "running"]
    assert codes(around(ran(4, lease_expires_at=None))) == ["lease_over", "running"]


def test_the_last_progress_says_how_long_ago_it_was() -> None:
    said = Progress(30, 100, "rows", moment(-120))
    reasons = explain(around(ran(4, progress=said))).reasons
    assert reasons[-1].text == "It last reported progress 2m ago: 30 of 100, rows."


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (job(Status.COMPLETED, finished_at=moment(-60), attempt=1), "after 1 attempt."),
        (job(Status.CANCELLED, finished_at=moment(-60), reason="not needed"), "not needed."),
        (
            job(Status.DEAD, finished_at=moment(-60), attempt=3, reason="failed 3 of 3", error=JobError("E", "no")),
            "after 3 attempts: failed 3 of 3. The last error: E: no.",
        ),
    ],
)
def test_a_finished_job_says_how_it_ended(its: Job, said: str) -> None:
    why = explain(around(its))
    assert (len(why.reasons), why.first.code) == (1, str(its.status))
    assert why.first.text.endswith(said)
    assert "(1m ago)" in why.first.text
    assert (why.estimated_start, why.basis) == (None, None)


def test_far_away_moments_are_no_error() -> None:
    why = explain(around(job(Status.SCHEDULED, run_at=to_datetime(NOW + 36_000 * DAY))))
    assert why.first.code == "not_due"

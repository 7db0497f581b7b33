"""Whatever the circumstances are, there is an answer, and its moments are in order."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.flow.rate import Rate, TokenBucket
from windlass.core.ids import new_id
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY
from windlass.core.jobs.job import Job, JobError, Progress
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.stats.meter import INTERVAL, histogram, interval_of
from windlass.core.status import FINISHED, WAITING, Status
from windlass.core.why.explain import Why, explain
from windlass.core.why.facts import Count, Holder, QueuePosition, Throughput, WhyFacts, WorkerSummary

NOW = 1_800_000_000 * SECOND
ID = new_id()

moments = st.integers(NOW - DAY, NOW + 400 * DAY)
datetimes = moments.map(to_datetime)
counts = st.builds(Count, st.integers(0, 20_000), st.booleans())
rates = st.builds(
    Rate, st.integers(1, 10**6), st.integers(1, 86_400).map(lambda s: s * SECOND), st.integers(1, 10**6)
)
token_buckets = st.builds(TokenBucket, st.integers(-(10**12), 10**12), st.integers(1, DAY), moments)
holders = st.lists(
    st.builds(Holder, st.just(ID), st.sampled_from(Status), moments, moments, st.none() | st.just("r")), max_size=5
).map(tuple)
settings = st.builds(
    QueueSettings,
    max_concurrency=st.none() | st.integers(0, 10),
    rate_limit=st.none() | rates,
    fair=st.booleans(),
    weights=st.dictionaries(st.sampled_from(["a", "b"]), st.floats(0.01, 100), max_size=2),
)
jobs = st.builds(
    Job,
    id=st.just(ID),
    type=st.just("t"),
    queue=st.just("q"),
    payload=st.none(),
    status=st.sampled_from(Status),
    reason=st.sampled_from([None, "", WAITING_FOR_KEY, NO_WORKER, "rate limit of its key", "said\nsomebody"]),
    attempt=st.integers(0, 5),
    run_at=datetimes,
    created_at=datetimes,
    updated_at=datetimes,
    claimed_at=st.none() | datetimes,
    started_at=st.none() | datetimes,
    finished_at=st.none() | datetimes,
    lease_expires_at=st.none() | datetimes,
    expires_at=st.none() | datetimes,
    worker=st.none() | st.just("r"),
    concurrency_key=st.none() | st.text(min_size=1, max_size=80),
    key_limit=st.none() | st.integers(1, 5),
    key_rate=st.none() | rates.map(str) | st.just("rubbish"),
    rate_cost=st.integers(1, 10**6),
    tenant=st.none() | st.sampled_from(["a", "b"]),
    timeout=st.none() | st.floats(1, 1e6),
    cancel_requested=st.booleans(),
    progress=st.none()
    | st.builds(Progress, st.floats(0, 1), st.none() | st.just(1.0), st.none(), st.none() | datetimes),
    error=st.none() | st.builds(JobError, st.just("E"), st.text(max_size=200)),
)
circumstances = st.builds(
    WhyFacts,
    now=st.just(NOW),
    job=jobs,
    queue=st.builds(
        Queue,
        name=st.just("q"),
        paused=st.booleans(),
        paused_until=st.none() | datetimes,
        closed=st.booleans(),
        changed=settings,
    ),
    worker=st.none() | st.just("w"),
    position=st.builds(
        QueuePosition,
        ahead=counts,
        higher_priority=counts,
        same_tenant=counts,
        same_priority=counts,
        ahead_for_key=counts,
        running=counts,
        slots=counts,
        tenants=st.lists(st.sampled_from(["", "a", "b"]), unique=True).map(tuple),
    ),
    runners=holders,
    holders=holders,
    queue_token_bucket=st.none() | token_buckets,
    key_token_bucket=st.none() | token_buckets,
    workers=st.builds(
        WorkerSummary,
        alive=st.integers(0, 3),
        know=st.integers(0, 3),
        serve=st.integers(0, 3),
        able=st.integers(0, 3),
        draining=st.integers(0, 3),
        slots=st.integers(0, 30),
        busy=st.integers(0, 30),
    ),
    typical_duration=st.lists(st.integers(0, 10**10), max_size=5).map(histogram),
    throughput=st.dictionaries(
        st.integers(0, 31).map(lambda n: interval_of(NOW) - n * INTERVAL), st.integers(0, 10**5), max_size=5
    ).map(Throughput),
)


@given(circumstances)
def test_there_is_always_an_answer_in_whole_sentences(facts: WhyFacts) -> None:
    why = explain(facts)
    assert why.reasons
    for reason in why.reasons:
        assert reason.code.isidentifier()
        assert reason.text[0].isupper() or reason.text[0].isdigit()
        assert reason.text.endswith((".", "stopped."))
    codes = [reason.code for reason in why.reasons]
    assert len(set(codes)) == len(codes)


@given(circumstances)
def test_an_estimate_is_in_its_range_and_not_in_the_past(facts: WhyFacts) -> None:
    why = explain(facts)
    if facts.job.status not in WAITING:
        assert (why.estimated_start, why.earliest, why.latest, why.basis) == (None, None, None, None)
        return
    assert why.basis
    known = [moment for moment in (why.at, why.earliest, why.estimated_start, why.latest) if moment is not None]
    assert known == sorted(known)
    if why.latest is not None:
        assert why.estimated_start is not None


@given(circumstances)
def test_a_job_that_is_not_due_or_paused_is_not_said_to_start_before(facts: WhyFacts) -> None:
    why = explain(facts)
    if why.earliest is None:
        return
    if facts.job.status in (Status.SCHEDULED, Status.FAILED):
        assert why.earliest >= facts.job.run_at
    if facts.queue.paused and facts.queue.paused_until is not None:
        assert why.earliest >= facts.queue.paused_until


@given(circumstances)
def test_an_answer_is_json_and_back(facts: WhyFacts) -> None:
    why = explain(facts)
    assert msgspec.json.decode(msgspec.json.encode(why), type=Why) == why


@given(circumstances)
def test_a_finished_job_has_one_reason_and_that_is_its_status(facts: WhyFacts) -> None:
    if facts.job.status in FINISHED:
        assert [reason.code for reason in explain(facts).reasons] == [str(facts.job.status)]

"""What a claim gives is read from fixed places in the packed record: it must be what the record says."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.jobs.job import Claimed
from windlass.store.redis.records.record import Fields, Letter, Record, pack
from windlass.store.redis.verbs.claim import to_claimed

moments = st.integers(0, 2**62)
words = st.text(max_size=20)
maybe = st.none() | words

RECORDS = st.builds(
    Record,
    id=st.uuids().map(str),
    letter=st.just(Letter.RUNNING),
    attempt=st.integers(1, 2**32 - 1),
    claim=st.integers(0, 2**32 - 1),
    claimed_at=moments,
    started_at=moments,
    runner=st.just("ä-runner"),
    flags=st.integers(0, 1023),
    type=st.integers(1, 1000),
    sort_priority=st.integers(-1000, 1000),
    aged_by=st.integers(0, 2000),
    rank=moments,
    run_at=moments,
    created_at=moments,
    expires_at=moments,
    timeout=moments,
    max_attempts=st.integers(1, 1000),
    key_slot=st.integers(-1, 100),
    failures=st.integers(0, 1000),
    crashes=st.integers(0, 1000),
    rescues=st.integers(0, 2**32 - 1),
    suspicions=st.integers(0, 1000),
    requeues=st.integers(0, 2**32 - 1),
    snoozes=st.integers(0, 2**32 - 1),
    fields=st.builds(
        Fields,
        type=words,
        tenant=maybe,
        idempotency_key=maybe,
        concurrency_key=maybe,
        parent=maybe,
        flow=maybe,
        tags=maybe,
        meta=maybe,
    ),
    payload=words,
    result=st.none() | words.filter(bool),
)


@given(st.lists(RECORDS, max_size=3))
def test_a_claimed_job_is_what_its_record_says(records: list[Record]) -> None:
    reply = [each for record in records for each in (record.id.encode(), pack(record))]

    assert to_claimed("mail", "ä-runner", reply) == [_said(record) for record in records]


def _said(record: Record) -> Claimed:
    fields = record.fields
    return Claimed(
        id=record.id,
        queue="mail",
        type=fields.type,
        payload=record.payload,
        attempt=record.attempt,
        max_attempts=record.max_attempts,
        failures=record.failures,
        crashes=record.crashes,
        rescues=record.rescues,
        suspicions=record.suspicions,
        requeues=record.requeues,
        snoozes=record.snoozes,
        priority=-record.sort_priority - record.aged_by,
        run_at=record.run_at,
        created_at=record.created_at,
        claimed_at=record.claimed_at,
        idempotency_key=fields.idempotency_key,
        concurrency_key=fields.concurrency_key,
        tenant=fields.tenant,
        parent=fields.parent,
        flow=fields.flow,
        timeout=record.timeout,
        expires_at=record.expires_at or None,
        tags=fields.tags,
        meta=fields.meta,
    )

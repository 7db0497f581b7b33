"""A record as the row that every store shows jobs from."""

from typing import Any

from windlass.store.redis.records.record import Flag, Record


def row_of(record: Record, queue: str) -> tuple[Any, ...]:
    """The columns of store.rows.SHARED, finished_at and result: what `to_job` takes."""
    fields = record.fields
    return (
        record.id,
        queue,
        fields.type,
        record.payload,
        record.status,
        record.reason,
        record.sort_priority + record.aged_by,
        record.attempt,
        record.max_attempts,
        record.failures,
        record.crashes,
        record.rescues,
        record.suspicions,
        record.requeues,
        record.snoozes,
        record.run_at,
        record.created_at,
        record.updated_at,
        record.claimed_at or None,
        record.started_at or None,
        record.runner or None,
        fields.idempotency_key,
        fields.concurrency_key,
        fields.tenant,
        fields.parent,
        fields.flow,
        record.timeout,
        record.expires_at or None,
        bool(record.flags & Flag.CANCEL_REQUESTED),
        fields.tags,
        fields.meta,
        record.details.error,
        record.details.attempts,
        fields.window,
        fields.key_limit,
        fields.key_strict,
        None if fields.rate is None else str(fields.rate),
        fields.rate_cost,
        fields.parents,
        fields.schedule,
        fields.tick,
        record.updated_at if record.finished else None,
        record.result,
    )

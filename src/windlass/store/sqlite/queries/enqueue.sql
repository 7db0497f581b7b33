-- One new job.
INSERT INTO windlass_jobs (
    id, queue, type, payload, status, urgency, rank, run_at, max_attempts, created_at, updated_at,
    idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

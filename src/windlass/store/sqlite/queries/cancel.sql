-- A waiting job is called off.
INSERT INTO windlass_history
SELECT id, queue, type, payload, 'cancelled', :reason, urgency, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions, hand_backs, snoozes, created_at, :now, claimed_at, started_at, :now, :now + :keep, worker,
    idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested, NULL,
    error, attempts, tags, meta
FROM windlass_jobs WHERE id = :id

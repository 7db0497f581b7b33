-- What a claim took, best first, as long as it is still running.
SELECT id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, hand_backs, snoozes,
    -urgency - aged_by, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent::text, flow, timeout,
    expires_at, tags, meta, takes, inputs, schedule, tick
FROM windlass.jobs WHERE worker = :runner::text AND claim = :claim::bigint AND status = 'running'
ORDER BY urgency, rank, id

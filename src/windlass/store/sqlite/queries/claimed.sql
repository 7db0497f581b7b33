-- What a claim took when it was first made, as long as it is still running.
SELECT id, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, hand_backs, snoozes,
    -urgency, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent, flow, timeout,
    expires_at, tags, meta, rank
FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE worker = :runner AND claim = :claim AND status = 'running'
ORDER BY urgency, rank, id

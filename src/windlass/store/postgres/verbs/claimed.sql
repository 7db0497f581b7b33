-- The running jobs of a claim, best first.
SELECT id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes,
    -sort_priority - aged_by, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent::text, flow, timeout,
    expires_at, tags, meta, result_params, parent_results, schedule, tick
FROM windlass.jobs WHERE worker = :runner::text AND claim = :claim::bigint AND status = 'running'
ORDER BY sort_priority, rank, id

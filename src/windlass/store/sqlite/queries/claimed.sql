-- What a claim took, best first, as long as it is still running. One row of JSON, because the driver lets go of the
-- interpreter between rows, and to get it back among busy threads takes longer than the row.
SELECT '[' || group_concat(job) || ']' FROM (
    SELECT json_array(
        id, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, hand_backs, snoozes,
        -urgency - aged_by, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent, flow, timeout,
        expires_at, tags, meta, takes, inputs, schedule, tick
    ) AS job
    FROM windlass_jobs INDEXED BY windlass_jobs_held
    WHERE worker = :runner AND claim = :claim AND status = 'running'
    ORDER BY urgency, rank, id
)

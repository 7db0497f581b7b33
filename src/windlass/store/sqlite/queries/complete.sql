-- Completed: into history, all of the batch at once. CROSS JOIN pins the order: the batch drives, jobs are looked up.
INSERT INTO windlass_history
SELECT job.id, queue, job.type, payload, 'completed', NULL, urgency, run_at, attempt, max_attempts,
    failures, crashes, rescues, suspicions, hand_backs, snoozes, created_at, :now, claimed_at,
    coalesce(claimed_at + (s.value ->> 2), started_at), :now,
    :now + coalesce((SELECT keep_completed FROM windlass_queues AS q WHERE q.name = job.queue), :keep),
    worker, idempotency_key, concurrency_key, tenant, job.parent, flow, parents, timeout, expires_at,
    cancel_requested, s.value ->> 3, NULL, attempts, tags, meta
FROM json_each(:batch) AS s CROSS JOIN windlass_jobs AS job ON job.id = s.value ->> 0

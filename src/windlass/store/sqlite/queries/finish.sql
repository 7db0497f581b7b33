-- The job is over: copy it into history.
INSERT INTO windlass_history
SELECT id, queue, type, payload, :status, :reason, urgency + aged_by, run_at, attempt, max_attempts,
    failures + :failures, crashes + :crashes, rescues + :rescues, suspicions + :suspicions,
    hand_backs + :hand_backs, snoozes + :snoozes,
    created_at, :now, claimed_at, :started_at, :now, :now + :keep, worker, idempotency_key, concurrency_key, tenant,
    parent, flow, parents, timeout, expires_at, cancel_requested, :result,
    CASE WHEN :status <> 'completed' THEN coalesce(:error, error) END, :attempts, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, takes, inputs, waits, lag
FROM windlass_jobs WHERE id = :id

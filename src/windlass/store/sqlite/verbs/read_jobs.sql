-- name: outcomes
SELECT id, coalesce(outcome, '') FROM windlass_tombstones
WHERE id IN (SELECT value FROM json_each(:ids)) AND until > :now

-- name: counts
-- Live jobs by the index of each status, finished ones by their counts.
SELECT queue, 'pending', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' GROUP BY queue
UNION ALL
SELECT queue, status, count(*) FROM windlass_jobs INDEXED BY windlass_jobs_due
WHERE status IN ('scheduled', 'failed') GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE status = 'running' GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_blocked
WHERE status = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, jobs FROM windlass_history_counts WHERE jobs <> 0

-- name: sort_key
SELECT sort_priority, rank FROM windlass_jobs WHERE id = :id

-- name: why_buckets
SELECT key, credit, period, at FROM windlass_buckets WHERE queue = :queue AND key IN ('', :key)

-- name: queue_position
-- What is ahead of a waiting job, each counted up to a bound inside an index: at higher priorities; at its own; in its tenant
-- queue; all at its priority; waiting for its key; running in its queue; held slots of its key.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND sort_priority < :sort_priority LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND (rank, id) < (:rank, :id)
        LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE :fair AND tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND tenant_queue = :lane
        AND (rank, id) < (:rank, :id) LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE :fair AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND id <> :id LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE :in_line AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) < :order LIMIT :most_in_line
    )) + (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE :in_line AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) = :order
        AND (rank, id) < (:line_rank, :id) LIMIT :most_in_line
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_held
        WHERE status = 'running' AND queue = :queue LIMIT :most_in_line
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_slot
        WHERE :in_line AND slot IS NOT NULL AND queue = :queue AND concurrency_key = :key LIMIT :most_in_line
    ))

-- name: tenants_beside
-- Tenants with pending jobs at one priority of a fair queue: one seek each.
WITH RECURSIVE walk (tenant_queue, n) AS (
    SELECT (
        SELECT tenant_queue FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE :fair AND tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority
        ORDER BY tenant_queue LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT tenant_queue FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND tenant_queue > walk.tenant_queue
        ORDER BY tenant_queue LIMIT 1
    ), n + 1 FROM walk WHERE walk.tenant_queue IS NOT NULL AND n < :most_tenants
)
SELECT tenant_queue FROM walk WHERE tenant_queue IS NOT NULL

-- name: parents
-- Live parents first.
SELECT id, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, status, finished_at, run_at, worker FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
LIMIT :most_named

-- name: longest_running
-- Among the first running jobs of a queue.
SELECT id, status, claimed_at, run_at, worker FROM (
    SELECT id, status, claimed_at, run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_held
    WHERE status = 'running' AND queue = :queue LIMIT :most_in_line
) ORDER BY claimed_at, id LIMIT :most_named

-- name: slot_holders
SELECT id, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_slot
WHERE :in_line AND slot IS NOT NULL AND queue = :queue AND concurrency_key = :key ORDER BY slot LIMIT :most_named

-- name: typical_durations
SELECT run FROM windlass_meters WHERE interval_start >= :since AND queue = :queue AND type = :type

-- name: throughput
SELECT interval_start, sum(completed + failed + dead + cancelled + snoozed + crashed) FROM windlass_meters
WHERE interval_start >= :since AND queue = :queue GROUP BY interval_start

-- name: queue_position
-- What is ahead of a waiting job: pending jobs at higher priorities; at its own; in its tenant queue; all at its priority;
-- jobs that wait for its key; running jobs of its queue; taken key slots of its key. Each is counted by an index, up to a bound.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND sort_priority < :sort_priority LIMIT :max_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND (rank, id) < (:rank, :id)
        LIMIT :max_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE :fair AND tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue
        AND sort_priority = :sort_priority AND tenant_queue = :tenant_queue
        AND (rank, id) < (:rank, :id) LIMIT :max_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE :fair AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority AND id <> :id LIMIT :max_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE :waits_for_key AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) < :key_priority LIMIT :max_for_key
    )) + (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE :waits_for_key AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) = :key_priority
        AND (rank, id) < (:key_rank, :id) LIMIT :max_for_key
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_held
        WHERE status = 'running' AND queue = :queue LIMIT :max_for_key
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_key_slot
        WHERE :waits_for_key AND key_slot IS NOT NULL AND queue = :queue AND concurrency_key = :key LIMIT :max_for_key
    ))

-- name: waiting_tenants
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
        WHERE tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue AND sort_priority = :sort_priority
        AND tenant_queue > walk.tenant_queue
        ORDER BY tenant_queue LIMIT 1
    ), n + 1 FROM walk WHERE walk.tenant_queue IS NOT NULL AND n < :max_tenants
)
SELECT tenant_queue FROM walk WHERE tenant_queue IS NOT NULL

-- name: longest_running
-- The jobs of a queue that have been running longest, among the first in the index.
SELECT id, status, claimed_at, run_at, worker FROM (
    SELECT id, status, claimed_at, run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_held
    WHERE status = 'running' AND queue = :queue LIMIT :max_for_key
) ORDER BY claimed_at, id LIMIT :max_named

-- name: key_slot_holders
SELECT id, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_key_slot
WHERE :waits_for_key AND key_slot IS NOT NULL AND queue = :queue AND concurrency_key = :key ORDER BY key_slot LIMIT :max_named

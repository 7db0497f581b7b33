-- name: count_running
-- By an index that has running jobs only.
SELECT count(*) FROM windlass_jobs INDEXED BY windlass_jobs_held WHERE status = 'running' AND queue = :queue

-- name: take_jobs
-- Like `claim`, for ids that limits, rates or fairness selected.
UPDATE windlass_jobs
SET status = 'running', attempt = attempt + 1, worker = :runner, claim = :claim,
    claimed_at = :now, started_at = NULL, updated_at = :now, reason = NULL
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: start_costs
-- The next jobs of a queue, best first, and what each costs to start; one row of JSON, like `claimed`.
SELECT '[' || group_concat(job) || ']' FROM (
    SELECT json_array(sort_priority, rank, id, coalesce(rate_cost, 1), coalesce(concurrency_key, ''), key_rate) AS job
    FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    AND (expires_at IS NULL OR expires_at > :now)
    ORDER BY sort_priority, rank, id LIMIT :limit
)

-- name: tenant_queues
-- Tenants with pending jobs at one priority of a fair queue, by name, from :from on and before :until: one seek each.
WITH RECURSIVE tenant_queues (tenant_queue) AS (
    SELECT (
        SELECT tenant_queue FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE queue = :queue AND sort_priority = :sort_priority AND tenant_queue >= :from
        AND status = 'pending' ORDER BY tenant_queue LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT tenant_queue FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE queue = :queue AND sort_priority = :sort_priority AND tenant_queue > tenant_queues.tenant_queue
        AND status = 'pending' ORDER BY tenant_queue LIMIT 1
    ) FROM tenant_queues WHERE tenant_queues.tenant_queue IS NOT NULL AND (:until IS NULL OR tenant_queues.tenant_queue < :until) LIMIT :limit + 1
)
SELECT '[' || group_concat(json_quote(tenant_queue)) || ']' FROM (
    SELECT tenant_queue FROM tenant_queues WHERE tenant_queue IS NOT NULL AND (:until IS NULL OR tenant_queue < :until) LIMIT :limit
)

-- name: tenant_heads
-- The next jobs of tenants where no tokens are needed: up to :max_jobs each, by rank, as [[tenant queue, [id, …]], …]. One
-- seek for each tenant; one row of JSON, like `claimed`.
SELECT '[' || group_concat(own) || ']' FROM (
    SELECT json_array(tenant_queues.value, json((
        SELECT '[' || group_concat(id) || ']' FROM (
            SELECT '"' || id || '"' AS id FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
            WHERE queue = :queue AND sort_priority = :sort_priority AND tenant_queue = tenant_queues.value AND status = 'pending'
            AND type IN (SELECT value FROM json_each(:types)) AND (expires_at IS NULL OR expires_at > :now)
            ORDER BY rank, windlass_jobs.id LIMIT :max_jobs
        )
    ))) AS own FROM json_each(:tenant_queues) AS tenant_queues
)

-- name: tenant_costs
-- The next jobs of tenants, by rank, and what each costs to start; [[tenant queue, jobs], …] says how many of each. One seek
-- for each job; one row of JSON, like `claimed`.
WITH RECURSIVE walk (tenant_queue, more, rank, id, rate_cost, concurrency_key, key_rate) AS (
    SELECT value ->> 0, value ->> 1, -9223372036854775808, NULL, NULL, NULL, NULL FROM json_each(:jobs_by_tenant)
    UNION ALL
    SELECT walk.tenant_queue, walk.more - 1, job.rank, job.id, job.rate_cost, job.concurrency_key, job.key_rate
    FROM walk CROSS JOIN windlass_jobs AS job ON job.id = (
        SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
        WHERE queue = :queue AND sort_priority = :sort_priority AND tenant_queue = walk.tenant_queue AND status = 'pending'
        AND (rank, id) > (walk.rank, coalesce(walk.id, ''))
        AND type IN (SELECT value FROM json_each(:types)) AND (expires_at IS NULL OR expires_at > :now)
        ORDER BY rank, id LIMIT 1
    )
    WHERE walk.more > 0
)
SELECT '[' || group_concat(json_array(
    tenant_queue, json_array(:sort_priority, rank, id, coalesce(rate_cost, 1), coalesce(concurrency_key, ''), key_rate)
)) || ']' FROM walk WHERE id IS NOT NULL

-- name: next_fair_priority
SELECT sort_priority FROM windlass_jobs INDEXED BY windlass_jobs_tenant_queue
WHERE queue = :queue AND status = 'pending' AND tenant_queue IS NOT NULL AND sort_priority > :after ORDER BY sort_priority LIMIT 1

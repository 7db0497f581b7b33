-- name: admit
-- Due jobs become pending. A job with a key but no key slot waits for the key instead, ranked by its due time. The rank of a
-- pending job is never in the past: see core/jobs/admission.py.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
    rank = CASE
        WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN run_at
        -- A throttled job keeps its rank.
        WHEN reason IS 'rate limit of its key' THEN rank
        ELSE max(run_at, :now)
    END,
    updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit
)

-- name: due_key_queues
-- The keys for which due jobs will wait: those without a key slot.
SELECT DISTINCT queue, concurrency_key FROM (
    SELECT queue, concurrency_key, key_slot FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit
) WHERE concurrency_key IS NOT NULL AND key_slot IS NULL

-- name: next_due
SELECT run_at FROM windlass_jobs INDEXED BY windlass_jobs_due
WHERE status IN ('scheduled', 'failed') ORDER BY run_at, id LIMIT 1

-- name: backfilling_queue
-- A queue that became fair, and the id up to which its jobs have a tenant queue.
SELECT name, backfilled_to FROM windlass_queues WHERE fair AND backfilled_to IS NOT NULL ORDER BY name LIMIT 1

-- name: backfill_end
-- The last id of a batch; no row if it is the last batch.
SELECT id FROM windlass_jobs WHERE id > :after ORDER BY id LIMIT 1 OFFSET :jobs

-- name: assign_tenant_queues
UPDATE windlass_jobs SET tenant_queue = coalesce(tenant, '')
WHERE id > :after AND (:until IS NULL OR id <= :until) AND queue = :queue AND tenant_queue IS NULL

-- name: set_backfilled_to
-- NULL: all jobs have a tenant queue.
UPDATE windlass_queues SET backfilled_to = :until WHERE name = :queue

-- name: ageing
SELECT name, ageing FROM windlass_queues WHERE ageing IS NOT NULL

-- name: aged
-- Jobs at one priority that have waited too long, among the first :limit.
SELECT id FROM (
    SELECT id, updated_at FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND sort_priority = :sort_priority AND status = 'pending' ORDER BY rank, id LIMIT :limit
) WHERE updated_at <= :before

-- name: next_priority
-- The next priority with pending jobs, and its lowest rank: one seek.
SELECT sort_priority, rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' AND queue = :queue AND sort_priority > :after ORDER BY sort_priority, rank LIMIT 1

-- name: raise_priority
-- Move jobs to a higher priority. Their rank and the priority that users see do not change.
UPDATE windlass_jobs SET aged_by = aged_by + sort_priority - :sort_priority, sort_priority = :sort_priority, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))

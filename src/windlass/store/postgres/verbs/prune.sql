-- name: sum_history_counts
-- Sum up the counts of finished jobs, if there are many rows; returns how many rows were replaced by how many. Readers see
-- either the rows or their sums; inserts do not conflict, and concurrent calls skip locked rows.
WITH many AS MATERIALIZED (
    SELECT /*plain*/ctid/*end*//*yugabyte part*/ AS at FROM windlass.history_counts
    WHERE (SELECT count(*) FROM (SELECT FROM windlass.history_counts LIMIT :min_rows::integer) AS first) = :min_rows::integer
    LIMIT :max_rows::integer FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM windlass.history_counts
    WHERE /*plain*/ctid/*end*//*yugabyte part*/ = ANY (ARRAY(SELECT at FROM many)) RETURNING queue, status, day, jobs
), sums AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, day, sum(jobs) FROM gone GROUP BY queue, status, day HAVING sum(jobs) <> 0
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM sums)

-- name: drop
-- Drop finished jobs with their notes and dependencies. Their ids stay as tombstones until a day after they ended. The last
-- outcome is extracted from the attempts as text, because PostgreSQL cannot parse all JSON strings; that is exact, because
-- quotes within a JSON string are escaped.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) AND drop_at < :before::bigint
    RETURNING id, partition, queue, status, attempt, attempts, finished_at, drop_at, pending_parents, parents
), tombstone AS (
    INSERT INTO windlass.tombstones (id, partition, attempt, outcome, until)
    SELECT id, (finished_at + :tombstone::bigint) / 86400000000 % 3, attempt,
        CASE status WHEN 'completed' THEN status ELSE substring(attempts FROM '.*"outcome":"([^"\\]*)"') END,
        finished_at + :tombstone::bigint
    FROM gone WHERE finished_at + :tombstone::bigint > :now
), noted AS (
    DELETE FROM windlass.notes WHERE job = ANY (ARRAY(SELECT id FROM gone))
), unlinked AS (
    -- A dropped job waits for no parent.
    DELETE FROM windlass.dependencies WHERE /*plain*/ctid = ANY (ARRAY(/*end*//*yugabyte (parent, child) IN (*/
        SELECT dependency./*plain*/ctid/*end*//*yugabyte parent, dependency.child*/ FROM gone
        CROSS JOIN LATERAL json_array_elements_text(gone.parents::json) AS named (parent)
        CROSS JOIN LATERAL (
            SELECT /*plain*/ctid/*end*//*yugabyte parent, child*/ FROM windlass.dependencies
            WHERE parent = named.parent::uuid AND child = gone.id OFFSET 0
        ) AS dependency WHERE gone.pending_parents > 0
    )/*plain*/)/*end*/
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN partition < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
SELECT id::text FROM gone

-- name: prune_keys
-- Delete keys whose window is over; locked ones are skipped.
DELETE FROM windlass.idempotency_keys WHERE /*plain*/ctid = ANY (ARRAY(/*end*//*yugabyte (queue, hash) IN (*/
    SELECT /*plain*/ctid/*end*//*yugabyte queue, hash*/ FROM windlass.idempotency_keys WHERE until IS NOT NULL AND until <= :now
    ORDER BY until LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)/*plain*/)/*end*/

-- name: prune_result_waits
DELETE FROM windlass.result_waits WHERE (job, channel) IN (
    SELECT job, channel FROM windlass.result_waits WHERE until <= :now ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- name: days_over
-- Days that are over and may have jobs in their partitions, and whether a later day already uses the same partition.
SELECT old.day, EXISTS (
    SELECT FROM windlass.history_counts AS later WHERE later.day > old.day AND (later.day - old.day) % 32 = 0
)
FROM (SELECT DISTINCT day FROM windlass.history_counts WHERE day >= 0 AND day < :now / 86400000000) AS old
ORDER BY old.day

-- name: reset_future_token_buckets
-- After the clock was set back, move token buckets in the future back to now, with their tokens, and make jobs that wait for
-- their tokens due earlier by as much. Locked rows are skipped.
WITH ahead AS MATERIALIZED (
    SELECT queue, key, at, at - :now AS by FROM windlass.token_buckets WHERE at > :now + :tolerance::bigint
    ORDER BY queue, key FOR NO KEY UPDATE SKIP LOCKED
), waiting AS MATERIALIZED (
    SELECT job.id, ahead.by FROM ahead CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE key_slot IS NOT NULL AND queue = ahead.queue AND concurrency_key = ahead.key
        AND status || '' = 'scheduled' AND reason = 'rate limit of its key' AND run_at >= ahead.at
        FOR UPDATE SKIP LOCKED
    ) AS job
), earlier AS (
    UPDATE windlass.jobs AS job SET run_at = job.run_at - waiting.by FROM waiting WHERE job.id = waiting.id
)
UPDATE windlass.token_buckets AS token_bucket SET at = token_bucket.at - ahead.by, full_at = token_bucket.full_at - ahead.by
FROM ahead WHERE token_bucket.queue = ahead.queue AND token_bucket.key = ahead.key

-- name: prune_token_buckets
DELETE FROM windlass.token_buckets WHERE /*plain*/ctid = ANY(ARRAY(/*end*//*yugabyte (queue, key) IN (*/
    SELECT /*plain*/ctid/*end*//*yugabyte queue, key*/ FROM windlass.token_buckets WHERE full_at < :now
    LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)/*plain*/)/*end*/

-- name: drop_one_by_one
-- The next page of a partition: its last id, and the jobs that must not be truncated with it, because they have blobs or
-- notes, wait for a parent, or ended so recently that they need a tombstone. With :every, all jobs of that day, because a
-- later day uses the partition.
WITH page AS MATERIALIZED (
    SELECT id, finished_at, drop_at,
        left(payload, 5) = 'blob:' OR coalesce(left(result, 5) = 'blob:', false) OR pending_parents > 0 AS refers
    FROM windlass.history WHERE partition = :partition::smallint AND id > :after::uuid ORDER BY id LIMIT :size::integer
)
SELECT (SELECT page.id::text FROM page ORDER BY page.id DESC LIMIT 1), ARRAY(
    SELECT page.id::text FROM page
    WHERE drop_at < :until::bigint AND (
        :every::boolean OR refers OR finished_at + :tombstone::bigint > :now
        OR coalesce((SELECT true FROM windlass.notes AS note WHERE note.job = page.id), false)
    )
    ORDER BY page.id LIMIT :limit::integer
)

-- name: lock_prunable
-- Lock jobs that are pruned row by row and whose retention is over, the oldest first; locked ones are skipped.
WITH loose AS MATERIALIZED (
    SELECT id, drop_at FROM windlass.history_default WHERE drop_at <= :now
    ORDER BY drop_at LIMIT :limit::integer FOR UPDATE SKIP LOCKED
), dead AS MATERIALIZED (
    SELECT id, drop_at FROM windlass.history_dead WHERE drop_at <= :now
    ORDER BY drop_at LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)
SELECT id::text FROM (SELECT * FROM loose UNION ALL SELECT * FROM dead) AS both_partitions
ORDER BY drop_at LIMIT :limit::integer

-- name: expired_tombstones
-- Yesterday, if its partition of tombstones has rows, and whether all of them have expired, as they have unless the clock was
-- set back.
SELECT :now / 86400000000 - 1, NOT EXISTS (
    SELECT 1 FROM windlass.tombstones
    WHERE partition = ((:now / 86400000000 - 1) % 3)::smallint AND until > :now
)
FROM windlass.tombstones WHERE partition = ((:now / 86400000000 - 1) % 3)::smallint LIMIT 1

-- name: set_lock_timeout
-- For this transaction only. While it waits for a lock, all others wait behind it.
SELECT set_config('lock_timeout', :wait::text, true)

-- name: later_days
-- Whether a later day already uses the same partition.
SELECT EXISTS (SELECT FROM windlass.history_counts WHERE day > :day::integer AND (day - :day::integer) % 32 = 0)

-- name: has_history_counts
SELECT EXISTS (SELECT FROM windlass.history_counts WHERE day = :day::integer)

-- name: drop_history_counts
-- Delete the counts of a day whose jobs are all dropped.
DELETE FROM windlass.history_counts WHERE day = :day::integer

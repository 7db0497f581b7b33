-- The next page of a partition: its last id, and the jobs that must not be truncated with it: they have blobs or
-- notes, wait for a parent, or ended so recently that they need a tombstone. All jobs of that day, if the partition
-- is in use.
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

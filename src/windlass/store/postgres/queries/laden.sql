-- The next page of a shelf: its last id, and those that must not go unseen with the shelf: they have a blob or notes,
-- wait for somebody, or ended so lately that their ids must be remembered. Or every one of that day, if the shelf has to
-- stay.
WITH page AS MATERIALIZED (
    SELECT id, finished_at, drop_at,
        left(payload, 5) = 'blob:' OR coalesce(left(result, 5) = 'blob:', false) OR waits > 0 AS refers
    FROM windlass.history WHERE shelf = :shelf::smallint AND id > :after::uuid ORDER BY id LIMIT :size::integer
)
SELECT (SELECT page.id::text FROM page ORDER BY page.id DESC LIMIT 1), ARRAY(
    SELECT page.id::text FROM page
    WHERE drop_at < :until::bigint AND (
        :every::boolean OR refers OR finished_at + :tombstone::bigint > :now
        OR coalesce((SELECT true FROM windlass.notes AS note WHERE note.job = page.id), false)
    )
    ORDER BY page.id LIMIT :limit::integer
)

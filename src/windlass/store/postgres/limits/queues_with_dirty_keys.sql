-- Queues with dirty keys, and the first transaction that this may not have seen.
SELECT ARRAY(
    SELECT name FROM windlass.queues AS queue
    WHERE EXISTS (SELECT 1 FROM windlass.dirty_keys AS dirty WHERE dirty.queue = queue.name AND dirty.tx >= :since::bigint)
), pg_snapshot_xmin(pg_current_snapshot())::text::bigint

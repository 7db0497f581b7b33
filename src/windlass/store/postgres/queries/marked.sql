-- Queues with keys that are marked, and the first transaction of which this has not seen all.
SELECT ARRAY(
    SELECT name FROM windlass.queues AS queue
    WHERE EXISTS (SELECT 1 FROM windlass.marks AS mark WHERE mark.queue = queue.name AND mark.tx >= :since::bigint)
), pg_snapshot_xmin(pg_current_snapshot())::text::bigint

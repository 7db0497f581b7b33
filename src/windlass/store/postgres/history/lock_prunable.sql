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

-- replaces: examine_overdue
-- For how long the oldest finished job is overdue, if its retention ended long ago.
SELECT NULL::bigint, max(:now - head.drop_at) FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
    SELECT drop_at FROM windlass.history WHERE bucket = part.bucket ORDER BY drop_at LIMIT 1
) AS head WHERE head.drop_at < :now - :late::bigint AND :day::bigint > 0

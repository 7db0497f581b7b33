-- Finished jobs whose retention ended long ago, by history_counts and by the indexes on drop_at: how many, as far as
-- known, and since when at most.
SELECT sum(jobs)::bigint, max(:now - until) FROM (
    SELECT sum(jobs) AS jobs, (day + 1) * :day::bigint AS until FROM windlass.history_counts WHERE day >= 0
    GROUP BY day HAVING sum(jobs) > 0
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_dead ORDER BY drop_at LIMIT 1)
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_default ORDER BY drop_at LIMIT 1)
) AS partition WHERE until < :now - :late::bigint

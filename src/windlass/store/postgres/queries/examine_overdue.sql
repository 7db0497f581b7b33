-- Finished jobs whose retention ended long ago: shelves by their tallies, the others by the first of their indexes.
-- How many, as far as that is known without walking, and since when at the longest.
SELECT sum(jobs)::bigint, max(:now - until) FROM (
    SELECT sum(jobs) AS jobs, (day + 1) * :day::bigint AS until FROM windlass.tallies WHERE day >= 0
    GROUP BY day HAVING sum(jobs) > 0
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_dead ORDER BY drop_at LIMIT 1)
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_loose ORDER BY drop_at LIMIT 1)
) AS shelf WHERE until < :now - :late::bigint

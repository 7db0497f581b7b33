-- Where history_counts and a recount of history differ.
SELECT queue, status, sum(kept)::bigint, sum(counted)::bigint FROM (
    SELECT queue, status, jobs AS kept, 0 AS counted FROM windlass.history_counts
    UNION ALL
    SELECT queue, status, 0, count(*) FROM windlass.history GROUP BY queue, status
) AS both_ways
GROUP BY queue, status HAVING sum(kept) <> sum(counted) ORDER BY queue, status

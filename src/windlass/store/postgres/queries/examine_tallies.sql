-- Where the tallies and a recount of the finished jobs differ.
SELECT queue, status, sum(kept)::bigint, sum(counted)::bigint FROM (
    SELECT queue, status, jobs AS kept, 0 AS counted FROM windlass.tallies
    UNION ALL
    SELECT queue, status, 0, count(*) FROM windlass.history GROUP BY queue, status
) AS both_ways
GROUP BY queue, status HAVING sum(kept) <> sum(counted) ORDER BY queue, status

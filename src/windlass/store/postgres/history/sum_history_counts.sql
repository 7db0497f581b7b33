-- Sum up the counts of finished jobs, if there are many rows: how many rows were replaced by how many. Readers see
-- the rows or their sums; inserts do not conflict, and concurrent calls skip locked rows.
WITH many AS MATERIALIZED (
    SELECT ctid FROM windlass.history_counts
    WHERE (SELECT count(*) FROM (SELECT FROM windlass.history_counts LIMIT :enough::integer) AS first) = :enough::integer
    LIMIT :most::integer FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM windlass.history_counts WHERE ctid = ANY (ARRAY(SELECT ctid FROM many)) RETURNING queue, status, day, jobs
), sums AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, day, sum(jobs) FROM gone GROUP BY queue, status, day HAVING sum(jobs) <> 0
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM sums)

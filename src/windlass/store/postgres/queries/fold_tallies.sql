-- Add up the counts of finished jobs, if there are many rows of them. Whoever counts sees the rows or their sums; whoever
-- adds one is not in the way, and two who fold have different rows in hand.
WITH many AS MATERIALIZED (
    SELECT ctid FROM windlass.tallies
    WHERE (SELECT count(*) FROM (SELECT FROM windlass.tallies LIMIT :enough::integer) AS first) = :enough::integer
    LIMIT :most::integer FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM windlass.tallies WHERE ctid = ANY (ARRAY(SELECT ctid FROM many)) RETURNING queue, status, day, jobs
)
INSERT INTO windlass.tallies (queue, status, day, jobs)
SELECT queue, status, day, sum(jobs) FROM gone GROUP BY queue, status, day HAVING sum(jobs) <> 0

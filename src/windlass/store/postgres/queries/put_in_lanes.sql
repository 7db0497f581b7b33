-- A portion of what is pending in a place of a fair queue, from one job on: those in no lane get the lane of their
-- tenant. How many they were, and the last job that was looked at, if there may be more behind it.
WITH seen AS MATERIALIZED (
    SELECT ctid, rank, id, lane FROM windlass.jobs
    WHERE queue = :queue::text AND urgency = :urgency::integer AND status = 'pending'
    AND (rank, id) > (:rank::bigint, :id::uuid)
    ORDER BY rank, id LIMIT :limit::integer
), moved AS (
    UPDATE windlass.jobs SET lane = coalesce(tenant, '') WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM windlass.jobs WHERE ctid = ANY(ARRAY(SELECT ctid FROM seen WHERE lane IS NULL))
        AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT (SELECT count(*) FROM moved), last.rank, last.id::text
FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT rank, id FROM seen WHERE (SELECT count(*) FROM seen) = :limit::integer ORDER BY rank DESC, id DESC LIMIT 1
) AS last ON true

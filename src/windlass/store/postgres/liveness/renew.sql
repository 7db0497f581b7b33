-- Extend valid leases, and note the activity in the same statement: it touches no other table, so no lock on one
-- delays it. Leases are locked in order; deleted and lapsed ones are not renewed. Nothing is done if a silence is to
-- be forgiven first, or the clock was set back, unless that was done at :moment. The activity is locked last, and
-- skipped if it is locked. A lease is never shortened: a concurrent transaction may have granted a grace.
WITH activity AS MATERIALIZED (
    SELECT clock.now, clock.now - activity.at AS silence
    FROM (SELECT :now AS now) AS clock LEFT JOIN windlass.lease_activity AS activity ON activity.one = 1
), due AS MATERIALIZED (
    SELECT :moment::bigint IS NULL AND (
        silence IS NULL OR silence <= -:set_back::bigint
        OR silence > :fresh::bigint AND EXISTS (SELECT FROM windlass.leases WHERE activity.silence > length / 2)
    ) AS due FROM activity
), kept AS MATERIALIZED (
    SELECT runner FROM windlass.leases
    WHERE runner = ANY (:runners::text[]) AND expires_at > coalesce(:moment::bigint, :now) AND NOT (SELECT due FROM due)
    ORDER BY runner FOR UPDATE
), renewed AS (
    UPDATE windlass.leases
    SET expires_at = greatest(expires_at, :now + :length::bigint), length = :length::bigint, graces = 0
    WHERE runner = ANY (ARRAY(SELECT runner FROM kept))
), beat AS (
    UPDATE windlass.lease_activity SET at = :now WHERE one = (
        SELECT one FROM windlass.lease_activity
        WHERE one = 1 AND (SELECT count(*) FROM kept) > 0 AND at < :now - :fresh::bigint FOR UPDATE SKIP LOCKED
    )
)
SELECT due, ARRAY(SELECT runner FROM kept) FROM due

-- Lapsed leases are over, a few at a time; from here on their runners can claim nothing. Those that somebody is renewing
-- or dropping at this very moment are left to them.
WITH lapsed AS MATERIALIZED (
    SELECT runner FROM windlass.leases WHERE expires_at <= :moment::bigint
    ORDER BY runner LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.leases WHERE runner = ANY (ARRAY(SELECT runner FROM lapsed))
RETURNING runner

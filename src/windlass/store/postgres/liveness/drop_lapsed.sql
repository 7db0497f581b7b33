-- Delete lapsed leases: their runners can claim nothing from here on. Locked ones are being renewed or deleted.
WITH lapsed AS MATERIALIZED (
    SELECT runner FROM windlass.leases WHERE expires_at <= :moment::bigint
    ORDER BY runner LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.leases WHERE runner = ANY (ARRAY(SELECT runner FROM lapsed))
RETURNING runner

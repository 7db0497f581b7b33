-- Delete keys whose window is over; locked ones are skipped.
DELETE FROM windlass.idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.idempotency_keys WHERE until IS NOT NULL AND until <= :now
    ORDER BY until LIMIT :limit::integer FOR UPDATE SKIP LOCKED
))

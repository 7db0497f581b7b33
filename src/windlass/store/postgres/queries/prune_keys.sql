-- Keys whose window is over, except those that somebody takes at this moment.
DELETE FROM windlass.keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.keys WHERE until IS NOT NULL AND until <= :now
    ORDER BY until LIMIT :limit::integer FOR UPDATE SKIP LOCKED
))

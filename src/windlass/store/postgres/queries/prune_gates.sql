-- Gates at which nobody has been for so long that they are full again: a new one would be the same.
DELETE FROM windlass.gates WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM windlass.gates WHERE full_at < :now LIMIT :limit::integer FOR UPDATE SKIP LOCKED
))

-- Delete buckets that are full again.
DELETE FROM windlass.buckets WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM windlass.buckets WHERE full_at < :now LIMIT :limit::integer FOR UPDATE SKIP LOCKED
))

-- Ids that nobody will hand in again.
DELETE FROM windlass.tombstones WHERE id = ANY (ARRAY(
    SELECT id FROM windlass.tombstones WHERE until <= :now ORDER BY until LIMIT :limit::integer FOR UPDATE SKIP LOCKED
))

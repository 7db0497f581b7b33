-- Ids that nobody will hand in again.
DELETE FROM windlass_tombstones
WHERE id IN (SELECT id FROM windlass_tombstones WHERE until <= :now ORDER BY until LIMIT :limit)

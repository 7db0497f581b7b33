-- Whether a dropped job ended so.
SELECT 1 FROM windlass_tombstones WHERE id = :id AND status = :status

-- Whether a dropped job's last attempt ended so.
SELECT 1 FROM windlass_tombstones WHERE id = :id AND attempt = :attempt AND outcome = :outcome

-- A worker is gone.
DELETE FROM windlass_workers WHERE id = :id

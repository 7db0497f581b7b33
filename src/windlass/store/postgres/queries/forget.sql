-- A worker is gone.
DELETE FROM windlass.workers WHERE id = :id

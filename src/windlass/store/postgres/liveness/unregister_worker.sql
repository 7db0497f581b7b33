-- Delete a worker.
DELETE FROM windlass.workers WHERE id = :id

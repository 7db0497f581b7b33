-- It is in history now.
DELETE FROM windlass_jobs WHERE id = :id

-- They are in history now.
DELETE FROM windlass_jobs WHERE id IN (SELECT value ->> 0 FROM json_each(:batch))

-- Progress and log lines go with their job.
DELETE FROM windlass_notes WHERE job IN (SELECT value FROM json_each(:ids))

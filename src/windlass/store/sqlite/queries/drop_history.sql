-- Finished jobs that nobody keeps any more.
DELETE FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))

-- Somebody waits for these. The caller has locked them, or has inserted them in this transaction.
UPDATE windlass.jobs SET heirs = true WHERE id = ANY (:ids::uuid[]) AND NOT heirs

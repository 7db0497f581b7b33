-- Free the key of a job that ended; a key that another job has taken since stays with it.
DELETE FROM windlass_keys WHERE queue = ? AND hash = ? AND job = ?

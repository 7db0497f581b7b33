-- The job has ended, its key stays taken for its window.
UPDATE windlass_keys SET until = ? WHERE queue = ? AND hash = ? AND job = ?

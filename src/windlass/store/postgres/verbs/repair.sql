-- Another payload for dead jobs, locked by the caller. Their times stay: retention counts from their end.
UPDATE windlass.history_dead SET payload = :payload WHERE id = ANY (:ids::uuid[])

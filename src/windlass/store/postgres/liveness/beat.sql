-- Register or refresh a worker.
INSERT INTO windlass.workers (id, info, started_at, beat_at) VALUES (:id, :info, :now, :now)
ON CONFLICT (id) DO UPDATE SET info = excluded.info, beat_at = excluded.beat_at

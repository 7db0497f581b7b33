-- Register a worker, or say that it is still here.
INSERT INTO windlass_workers (id, info, boot, beat, started_at, beat_at)
VALUES (:id, :info, :boot, :beat, :now, :now)
ON CONFLICT (id) DO UPDATE SET info = excluded.info, boot = excluded.boot, beat = excluded.beat, beat_at = excluded.beat_at

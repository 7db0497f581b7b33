-- Every registered worker.
SELECT id, info, boot, beat, started_at, beat_at FROM windlass_workers ORDER BY started_at, id

-- Remember ids that are dropped within a day of their end.
INSERT INTO windlass_tombstones (id, status, until)
SELECT id, status, finished_at + :tombstone FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at + :tombstone > :now
ON CONFLICT (id) DO UPDATE SET status = excluded.status, until = excluded.until

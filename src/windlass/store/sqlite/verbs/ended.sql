-- name: last_history_row
SELECT max(rowid) FROM windlass_history
-- name: history_row
SELECT finished_at FROM windlass_history WHERE rowid <= :row ORDER BY rowid DESC LIMIT 1
-- name: ended
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass_history WHERE rowid > :row AND finished_at >= :since AND (finished_at > :since OR id > :after)
ORDER BY finished_at, id LIMIT :limit

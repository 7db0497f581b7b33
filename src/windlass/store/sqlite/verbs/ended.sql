-- name: last_history_row
SELECT max(rowid) FROM windlass_history
-- name: history_row
SELECT finished_at FROM windlass_history WHERE rowid <= :row ORDER BY rowid DESC LIMIT 1
-- name: dead_ends
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass_history INDEXED BY windlass_history_dead
WHERE status = 'dead' AND finished_at <= :at AND (finished_at < :at OR id < :id)
ORDER BY finished_at DESC, id DESC LIMIT :limit
-- name: ended
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass_history WHERE rowid > :row AND finished_at >= :since AND (finished_at > :since OR id > :after)
ORDER BY finished_at, id LIMIT :limit

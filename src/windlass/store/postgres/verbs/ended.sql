-- name: dead_ends
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass.history_dead WHERE finished_at <= :at AND (finished_at < :at OR id < :id::uuid)
ORDER BY finished_at DESC, id DESC LIMIT :limit
-- name: ended
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass.ended(:since, :after::uuid, :limit)

-- name: ended
SELECT id, queue, type, status, attempt, finished_at, started_at, tenant, schedule, tags, reason, error
FROM windlass.ended(:since, :after::uuid, :limit)

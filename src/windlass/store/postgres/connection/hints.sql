-- name: notify
-- Wake workers of these queues.
SELECT pg_notify(:channel::text, queue)::text FROM unnest(:queues::text[]) AS told (queue)

-- name: notify
-- Wake workers of these queues.
SELECT :notify(:channel::text, queue)::text FROM unnest(:queues::text[]) AS hinted (queue)

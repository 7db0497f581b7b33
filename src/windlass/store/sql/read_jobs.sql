-- name: outcomes
SELECT id::text, coalesce(outcome, '') FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now
-- name: count_completed
WITH live AS (
    SELECT id FROM windlass.jobs WHERE parent = :parent::uuid AND id > :after::uuid AND id < :before::uuid ORDER BY id LIMIT 1
)
SELECT count(*), (SELECT id::text FROM live) FROM windlass.history
WHERE parent = :parent::uuid AND id > :after::uuid AND id < coalesce((SELECT id FROM live), :before::uuid)
AND status = 'completed'

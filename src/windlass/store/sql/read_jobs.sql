-- name: outcomes
SELECT id::text, coalesce(outcome, '') FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

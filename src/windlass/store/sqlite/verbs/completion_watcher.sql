-- name: not_live
SELECT value FROM json_each(:ids) WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE id = value)

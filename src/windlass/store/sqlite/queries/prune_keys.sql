-- Keys whose window is over.
DELETE FROM windlass_keys WHERE (queue, hash) IN (
    SELECT queue, hash FROM windlass_keys WHERE until IS NOT NULL AND until <= :now ORDER BY until LIMIT :limit
)

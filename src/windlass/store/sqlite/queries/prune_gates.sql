-- A bucket that is full is as good as none. Up to :limit, so that no transaction is long.
DELETE FROM windlass_gates WHERE (queue, key) IN (
    SELECT queue, key FROM windlass_gates WHERE full_at <= :now LIMIT :limit
)

-- Yesterday's partition of tombstones, if it has rows, and whether all have expired: they have, unless the clock was
-- set back.
SELECT :now / 86400000000 - 1, NOT EXISTS (
    SELECT 1 FROM windlass.tombstones
    WHERE partition = ((:now / 86400000000 - 1) % 3)::smallint AND until > :now
)
FROM windlass.tombstones WHERE partition = ((:now / 86400000000 - 1) % 3)::smallint LIMIT 1

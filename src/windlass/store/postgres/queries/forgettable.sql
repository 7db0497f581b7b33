-- The day of the tombstones that nobody needs any more, yesterday's, if there are any, and whether all of them are over:
-- unless somebody has set the clock back, they are.
SELECT :now / 86400000000 - 1, NOT EXISTS (
    SELECT 1 FROM windlass.tombstones
    WHERE shelf = ((:now / 86400000000 - 1) % 3)::smallint AND until > :now
)
FROM windlass.tombstones WHERE shelf = ((:now / 86400000000 - 1) % 3)::smallint LIMIT 1

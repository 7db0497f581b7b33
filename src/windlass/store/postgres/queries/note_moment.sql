-- What time it is, and a number that every transaction that has begun by now is below. It must be a number of our own: the
-- upper end of a snapshot is the last that has ended, and some that are above it may be under way.
SELECT :now, pg_current_xact_id()::text::bigint

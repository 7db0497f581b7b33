-- The time, and an id above those of all transactions that have begun. An id of our own: the upper end of a snapshot
-- is the last that has ended, and some above it may be running.
SELECT :now, pg_current_xact_id()::text::bigint

-- The partition of this day is empty.
DELETE FROM windlass.history_counts WHERE day = :day::integer

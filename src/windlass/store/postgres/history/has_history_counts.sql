-- Whether jobs are counted for this day.
SELECT EXISTS (SELECT FROM windlass.history_counts WHERE day = :day::integer)

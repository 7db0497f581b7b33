-- Whether a later day uses the same partition.
SELECT EXISTS (SELECT FROM windlass.history_counts WHERE day > :day::integer AND (day - :day::integer) % 32 = 0)

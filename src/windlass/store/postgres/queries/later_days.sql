-- Whether a later day has the same shelf.
SELECT EXISTS (SELECT FROM windlass.tallies WHERE day > :day::integer AND (day - :day::integer) % 32 = 0)

-- The shelf of this day is empty.
DELETE FROM windlass.tallies WHERE day = :day::integer

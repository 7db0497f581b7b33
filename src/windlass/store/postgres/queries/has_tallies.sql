-- Whether anything is counted for this day.
SELECT EXISTS (SELECT FROM windlass.tallies WHERE day = :day::integer)

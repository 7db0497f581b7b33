-- A schedule is removed; jobs that it handed in stay.
DELETE FROM windlass.schedules WHERE name = :name::text

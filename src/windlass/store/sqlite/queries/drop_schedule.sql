-- A schedule is removed; jobs that it handed in stay.
DELETE FROM windlass_schedules WHERE name = :name

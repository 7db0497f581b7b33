-- Delete a schedule; its jobs stay.
DELETE FROM windlass.schedules WHERE name = :name::text

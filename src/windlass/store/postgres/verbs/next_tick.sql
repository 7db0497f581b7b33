-- The time, and the next tick of all schedules.
SELECT :now, (SELECT min(next_at) FROM windlass.schedules WHERE next_at IS NOT NULL AND NOT paused)

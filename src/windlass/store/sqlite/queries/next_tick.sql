-- The first tick that nobody has seen to, of all schedules.
SELECT min(next_at) FROM windlass_schedules INDEXED BY windlass_schedules_due WHERE next_at IS NOT NULL AND paused = 0

-- What time it is, and the first tick of all that nobody has seen to.
SELECT :now, (SELECT min(next_at) FROM windlass.schedules WHERE next_at IS NOT NULL AND NOT paused)

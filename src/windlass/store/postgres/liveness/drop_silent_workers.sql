-- Delete workers without a recent heartbeat.
DELETE FROM windlass.workers WHERE beat_at <= :now - :silent::bigint

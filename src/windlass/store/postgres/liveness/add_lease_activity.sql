-- The first activity.
INSERT INTO windlass.lease_activity (one, at, seen_at, graced_until) VALUES (1, :now, :now, :now) ON CONFLICT (one) DO NOTHING

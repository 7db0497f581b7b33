-- The very first sign of life.
INSERT INTO windlass.pulse (one, at) VALUES (1, :now) ON CONFLICT (one) DO NOTHING

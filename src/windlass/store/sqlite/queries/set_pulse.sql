-- Somebody is here.
INSERT INTO windlass_pulse (one, boot, at) VALUES (1, :boot, :now)
ON CONFLICT (one) DO UPDATE SET boot = excluded.boot, at = excluded.at

-- Take or keep the office.
INSERT INTO windlass_office (one, holder, term, boot, expires_at) VALUES (1, :holder, :term, :boot, :expires_at)
ON CONFLICT (one) DO UPDATE
SET holder = excluded.holder, term = excluded.term, boot = excluded.boot, expires_at = excluded.expires_at

-- Take the office if it is free, keep it if it is ours. Of two who want it at once the second one waits for the first,
-- and then sees that it is taken. The term grows with every new hold, also of the same candidate.
INSERT INTO windlass.office AS office (one, holder, term, expires_at) VALUES (1, :holder, 1, :now + :length::bigint)
ON CONFLICT (one) DO UPDATE SET
    holder = excluded.holder,
    term = office.term + CASE WHEN office.holder = excluded.holder AND office.expires_at > :now THEN 0 ELSE 1 END,
    expires_at = excluded.expires_at
WHERE office.holder IS NULL OR office.holder = excluded.holder OR office.expires_at <= :now
RETURNING term

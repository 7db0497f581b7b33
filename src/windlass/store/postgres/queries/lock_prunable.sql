-- Finished jobs that go row by row and whose retention is over, the oldest first. What somebody else has in hand is his.
(SELECT id::text, drop_at FROM windlass.history_loose WHERE drop_at <= :now
 ORDER BY drop_at LIMIT :limit::integer FOR UPDATE SKIP LOCKED)
UNION ALL
(SELECT id::text, drop_at FROM windlass.history_dead WHERE drop_at <= :now
 ORDER BY drop_at LIMIT :limit::integer FOR UPDATE SKIP LOCKED)
ORDER BY 2 LIMIT :limit::integer

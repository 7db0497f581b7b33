-- Finished jobs whose retention is over.
SELECT id FROM windlass_history WHERE drop_at <= :now ORDER BY drop_at LIMIT :limit

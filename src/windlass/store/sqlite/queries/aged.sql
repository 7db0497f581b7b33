-- Who has waited too long, among the first :limit at one priority of a queue.
SELECT id FROM (
    SELECT id, updated_at FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND urgency = :urgency AND status = 'pending' ORDER BY rank, id LIMIT :limit
) WHERE updated_at <= :before

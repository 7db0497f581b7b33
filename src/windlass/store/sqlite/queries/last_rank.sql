-- The rank of the last who waits in a queue, at one priority.
SELECT rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE queue = :queue AND urgency = :urgency AND status = 'pending' ORDER BY rank DESC LIMIT 1

-- Who waits for tokens of such a bucket (see turn_back_gates) waits for a moment of that time: by so much earlier.
UPDATE windlass_jobs SET run_at = run_at + :now - (
    SELECT gate.at FROM windlass_gates AS gate
    WHERE gate.queue = windlass_jobs.queue AND gate.key = windlass_jobs.concurrency_key
)
WHERE id IN (
    SELECT job.id FROM windlass_gates AS gate CROSS JOIN windlass_jobs AS job INDEXED BY windlass_jobs_slot
    WHERE gate.at > :now + :little AND job.queue = gate.queue AND job.concurrency_key = gate.key AND job.slot IS NOT NULL
    AND job.status = 'scheduled' AND job.reason = 'rate limit of its key' AND job.run_at >= gate.at
)

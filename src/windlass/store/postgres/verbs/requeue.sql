-- Requeued or rescued jobs become pending at their old ranks. Returns their ranks, for the watermarks.
UPDATE windlass.jobs AS job
SET status = 'pending', reason = back.reason, updated_at = :now, claimed_at = NULL, started_at = NULL, worker = NULL,
    claim = NULL, error = coalesce(back.error, job.error), attempts = back.attempts,
    crashes = job.crashes + back.crashes, rescues = job.rescues + back.rescues,
    suspicions = job.suspicions + back.suspicions, requeues = job.requeues + back.requeues
FROM unnest(
    :ids::uuid[], :reasons::text[], :errors::text[], :attempts::text[], :crashes::integer[], :rescues::integer[],
    :suspicions::integer[], :requeues::integer[]
) AS back (id, reason, error, attempts, crashes, rescues, suspicions, requeues)
WHERE job.id = back.id AND job.id = ANY (:ids::uuid[])
RETURNING queue, sort_priority, rank

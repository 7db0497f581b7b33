-- Handed back or rescued: pending at once, at their old ranks. Which places they came to is for the floors.
UPDATE windlass.jobs AS job
SET status = 'pending', reason = back.reason, updated_at = :now, claimed_at = NULL, started_at = NULL, worker = NULL,
    claim = NULL, error = coalesce(back.error, job.error), attempts = back.attempts,
    crashes = job.crashes + back.crashes, rescues = job.rescues + back.rescues,
    suspicions = job.suspicions + back.suspicions, hand_backs = job.hand_backs + back.hand_backs
FROM unnest(
    :ids::uuid[], :reasons::text[], :errors::text[], :attempts::text[], :crashes::integer[], :rescues::integer[],
    :suspicions::integer[], :hand_backs::integer[]
) AS back (id, reason, error, attempts, crashes, rescues, suspicions, hand_backs)
WHERE job.id = back.id AND job.id = ANY (:ids::uuid[])
RETURNING queue, urgency, rank

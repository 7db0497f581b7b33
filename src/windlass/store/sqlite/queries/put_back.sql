-- Handed back or rescued: pending at once, at its old rank.
UPDATE windlass_jobs
SET status = 'pending', reason = :reason, updated_at = :now, claimed_at = NULL, started_at = NULL,
    worker = NULL, claim = NULL, error = coalesce(:error, error), attempts = :attempts,
    crashes = crashes + :crashes, rescues = rescues + :rescues, suspicions = suspicions + :suspicions,
    hand_backs = hand_backs + :hand_backs
WHERE id = :id

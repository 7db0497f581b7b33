-- Gates from a time that has not come: the clock was set back by more than a little. They keep what they hold, and are
-- filled from now on; else they would bring nothing until that time. One that somebody is at is left to the next look.
UPDATE windlass.gates SET at = :now, full_at = :now + full_at - at WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM windlass.gates WHERE at > :now + :little::bigint FOR NO KEY UPDATE SKIP LOCKED
))

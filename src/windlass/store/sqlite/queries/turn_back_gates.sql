-- Buckets from a time that has not come: the clock was set back by more than a little. They keep what they hold, and are
-- filled from now on; else they would bring nothing until that time.
UPDATE windlass_gates SET at = :now, full_at = :now + full_at - at WHERE at > :now + :little

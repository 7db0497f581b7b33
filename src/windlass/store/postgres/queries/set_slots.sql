-- A runner may run so many jobs of a queue at once.
UPDATE windlass.shares SET slots = :slots::integer WHERE queue = :queue::text AND runner = :runner::text

-- A runner may run so many more jobs of a queue at once.
UPDATE windlass.shares SET slots = slots + :slots::integer WHERE queue = :queue::text AND runner = :runner::text

-- Set a runner's quota.
UPDATE windlass.quotas SET slots = :slots::integer WHERE queue = :queue::text AND runner = :runner::text

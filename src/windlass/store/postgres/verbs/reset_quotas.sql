-- The queue got a limit: what its runners run was not counted before.
UPDATE windlass.quotas SET slots = NULL WHERE queue = :queue::text

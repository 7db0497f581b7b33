-- A queue without a limit has got one: what its runners run was not counted meanwhile.
UPDATE windlass.shares SET slots = NULL WHERE queue = :queue::text

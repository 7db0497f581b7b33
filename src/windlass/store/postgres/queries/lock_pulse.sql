-- The same with a lock: who waited for it sees what the one before has written.
SELECT at, :now FROM windlass.pulse WHERE one = 1 FOR UPDATE

-- Lock the pulse, unless somebody else has it just now: then nothing.
SELECT at, :now FROM windlass.pulse WHERE one = 1 FOR UPDATE SKIP LOCKED

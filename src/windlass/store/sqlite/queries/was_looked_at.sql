-- Whether it was written down how many jobs there were in this minute.
SELECT 1 FROM windlass_depths WHERE step = :step AND slot = :slot AND queue = ''

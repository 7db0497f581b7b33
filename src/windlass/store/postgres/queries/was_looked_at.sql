-- Whether it was written down how many jobs there were in this minute.
SELECT 1 FROM windlass.depths WHERE step = :step::bigint AND slot = :slot::bigint AND queue = ''

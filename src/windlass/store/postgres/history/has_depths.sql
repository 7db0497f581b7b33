-- Whether queue depths were written for this minute.
SELECT 1 FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start = :slot::bigint AND queue = ''

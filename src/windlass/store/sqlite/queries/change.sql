-- Change a waiting job. What ageing has lifted it by goes when it is put off, moved, or given another priority;
-- and the delay after its parents, when it gets a time.
UPDATE windlass_jobs
SET status = :status, reason = :reason, run_at = :run_at, rank = :rank, updated_at = :now,
    urgency = coalesce(:urgency, CASE WHEN :status = 'scheduled' OR queue <> :queue THEN urgency + aged_by ELSE urgency END),
    aged_by = CASE WHEN :urgency IS NOT NULL OR :status = 'scheduled' OR queue <> :queue THEN 0 ELSE aged_by END,
    payload = coalesce(:payload, payload), queue = :queue, slot = :slot, lag = iif(:timed, 0, lag),
    lane = (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
WHERE id = :id

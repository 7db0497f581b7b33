-- Lock meters, in order: histograms are added in code.
SELECT meter.interval_start, meter.queue, meter.type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS wanted (queue, type, place)
JOIN windlass.meters AS meter ON meter.interval_start = :slot AND meter.queue = wanted.queue AND meter.type = wanted.type
ORDER BY wanted.place FOR UPDATE OF meter

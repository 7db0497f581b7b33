-- What is there: a histogram can only be added to in code, and nobody else may add to it meanwhile.
SELECT meter.slot, meter.queue, meter.type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS wanted (queue, type, place)
JOIN windlass.meters AS meter ON meter.slot = :slot AND meter.queue = wanted.queue AND meter.type = wanted.type
ORDER BY wanted.place FOR UPDATE OF meter

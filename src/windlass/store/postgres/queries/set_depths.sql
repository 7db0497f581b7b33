-- Keep how many jobs there were, unless somebody has looked as often; in one order, so that nobody waits in a circle.
INSERT INTO windlass.depths AS kept (step, slot, queue, looks, jobs, most, oldest)
SELECT :step::bigint, new.slot, new.queue, new.looks, new.jobs, new.most, new.oldest
FROM unnest(
    :slots::bigint[], :queues::text[], :looks::bigint[], :jobs::text[], :mosts::text[], :oldests::bigint[]
) WITH ORDINALITY AS new (slot, queue, looks, jobs, most, oldest, place)
ORDER BY new.place
ON CONFLICT (step, slot, queue) DO UPDATE SET
    looks = excluded.looks, jobs = excluded.jobs, most = excluded.most, oldest = excluded.oldest
WHERE excluded.looks > kept.looks

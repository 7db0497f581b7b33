-- Write queue depths, unless there are some with as many observations; in order.
INSERT INTO windlass.queue_depths AS kept (step, interval_start, queue, observations, jobs, max_jobs, oldest)
SELECT :step::bigint, new.interval_start, new.queue, new.observations, new.jobs, new.max_jobs, new.oldest
FROM unnest(
    :slots::bigint[], :queues::text[], :looks::bigint[], :jobs::text[], :mosts::text[], :oldests::bigint[]
) WITH ORDINALITY AS new (interval_start, queue, observations, jobs, max_jobs, oldest, place)
ORDER BY new.place
ON CONFLICT (step, interval_start, queue) DO UPDATE SET
    observations = excluded.observations, jobs = excluded.jobs, max_jobs = excluded.max_jobs, oldest = excluded.oldest
WHERE excluded.observations > kept.observations

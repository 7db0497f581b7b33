-- Whether anything in these queues may be claimed, a key of theirs is marked, or anything is due.
SELECT EXISTS (
    SELECT 1 FROM windlass.floors AS floor CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = floor.queue AND job.urgency = floor.urgency AND job.rank >= floor.rank
        AND job.status = 'pending' AND (:types::text[] IS NULL OR job.type = ANY(:types::text[])) LIMIT 1
    ) AS found WHERE floor.queue = ANY(:queues::text[]) AND NOT EXISTS (
        SELECT 1 FROM windlass.queues AS queue
        WHERE queue.name = floor.queue AND queue.paused AND (queue.paused_until IS NULL OR queue.paused_until > :now)
    )
) OR EXISTS (
    SELECT 1 FROM windlass.jobs
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    AND run_at >= (SELECT due FROM windlass.due_floor)
)
OR EXISTS (SELECT 1 FROM windlass.marks WHERE queue = ANY(:queues::text[]))

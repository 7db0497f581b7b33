-- What a hand-in must know of each place, [[queue, urgency], …], in their order: the budget of attempts and the timeout
-- that the queue gives (NULL: nobody has used it yet), whether it is closed, and the rank of the last who waits there; and
-- whether any id is as high as the lowest of the new ones. Ids grow with time, so mostly none is, and none of them can
-- have been handed in.
SELECT queue.max_attempts, queue.timeout, queue.closed,
    (
        SELECT rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE queue = place.value ->> 0 AND urgency = place.value ->> 1 AND status = 'pending'
        ORDER BY rank DESC LIMIT 1
    ),
    EXISTS (SELECT 1 FROM windlass_jobs WHERE id >= :lowest)
    OR EXISTS (SELECT 1 FROM windlass_history WHERE id >= :lowest)
    OR EXISTS (SELECT 1 FROM windlass_tombstones WHERE id >= :lowest)
FROM json_each(:places) AS place LEFT JOIN windlass_queues AS queue ON queue.name = place.value ->> 0

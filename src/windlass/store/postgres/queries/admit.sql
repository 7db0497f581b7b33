-- Make due jobs pending or, with a key and no slot, let them go to its line, in the order in which they are due; the
-- earliest first. Tell how many, and when the next one is due. Nobody waits for anybody:
-- what another one has in hand at this moment is left to him. The rank of a pending one is never in the past (see
-- core/admission.py) nor below the floor of its place; but who stepped aside for a rate has not lost its place by that,
-- and the floor is lowered to it. Where nothing is due, nothing is written. The next one is looked for behind the last
-- that was taken, because this statement still sees what it takes as due.
WITH start AS MATERIALIZED (
    SELECT due FROM windlass.due_floor WHERE one = 1
), due AS MATERIALIZED (
    SELECT id, queue, urgency, rank, reason, run_at, concurrency_key, concurrency_key IS NOT NULL AND slot IS NULL AS in_line
    FROM windlass.jobs
    WHERE status IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM start) AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
), places AS (
    INSERT INTO windlass.floors (queue, urgency) SELECT DISTINCT queue, urgency FROM due
    ON CONFLICT (queue, urgency) DO NOTHING
), admitted AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN job.concurrency_key IS NOT NULL AND job.slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN job.concurrency_key IS NOT NULL AND job.slot IS NULL THEN 'in line for its key' END,
        updated_at = :now,
        rank = CASE
            WHEN job.concurrency_key IS NOT NULL AND job.slot IS NULL THEN job.run_at
            WHEN job.reason = 'rate limit of its key' THEN job.rank
            ELSE greatest(job.run_at, :now, (
                SELECT f.rank FROM windlass.floors AS f WHERE f.queue = job.queue AND f.urgency = job.urgency
            ))
        END, lane = (
            SELECT CASE WHEN queue.fair THEN coalesce(job.tenant, '') END FROM windlass.queues AS queue
            WHERE queue.name = job.queue
        )
    WHERE job.id = ANY (ARRAY(SELECT id FROM due))
), lowered AS (
    UPDATE windlass.floors AS floor SET rank = least(floor.rank, back.rank), returns = floor.returns + 1
    FROM (
        SELECT queue, urgency, min(rank) AS rank FROM due WHERE reason = 'rate limit of its key' AND NOT in_line
        GROUP BY queue, urgency ORDER BY queue, urgency
    ) AS back
    WHERE floor.queue = back.queue AND floor.urgency = back.urgency
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT DISTINCT queue, concurrency_key FROM due WHERE in_line
), taken AS MATERIALIZED (
    SELECT count(*) AS jobs FROM due
), last AS MATERIALIZED (
    (SELECT run_at, id FROM due WHERE (SELECT jobs FROM taken) = :limit::integer ORDER BY run_at DESC, id DESC LIMIT 1)
    UNION ALL
    SELECT CASE WHEN :limit::integer = 0 THEN due - 1 ELSE :now END, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid FROM start
    LIMIT 1
)
SELECT (SELECT jobs FROM taken), (
    SELECT greatest(0, job.run_at - :now) FROM windlass.jobs AS job
    WHERE job.status IN ('scheduled', 'failed')
        AND (job.run_at, job.id) > ((SELECT run_at FROM last), (SELECT id FROM last))
    ORDER BY job.run_at, job.id LIMIT 1
)

-- What is before a waiting job, each counted up to a bound inside an index: at a higher priority; at its own; in its lane;
-- all at its priority; in the line for its key; what runs in its queue; the slots of its key that are held.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND urgency < :urgency LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE status = 'pending' AND queue = :queue AND urgency = :urgency AND (rank, id) < (:rank, :id)
        LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE :fair AND lane IS NOT NULL AND status = 'pending' AND queue = :queue AND urgency = :urgency AND lane = :lane
        AND (rank, id) < (:rank, :id) LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE :fair AND status = 'pending' AND queue = :queue AND urgency = :urgency AND id <> :id LIMIT :most_ahead
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_line
        WHERE :in_line AND status = 'blocked' AND reason = 'in line for its key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE urgency END) < :order LIMIT :most_in_line
    )) + (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_line
        WHERE :in_line AND status = 'blocked' AND reason = 'in line for its key' AND queue = :queue
        AND concurrency_key = :key AND (CASE WHEN key_strict THEN 0 ELSE urgency END) = :order
        AND (rank, id) < (:line_rank, :id) LIMIT :most_in_line
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_held
        WHERE status = 'running' AND queue = :queue LIMIT :most_in_line
    )),
    (SELECT count(*) FROM (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_slot
        WHERE :in_line AND slot IS NOT NULL AND queue = :queue AND concurrency_key = :key LIMIT :most_in_line
    ))

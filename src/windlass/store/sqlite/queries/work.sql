-- Whether anything in these queues, none of which is shut, may be claimed, or anything is due.
SELECT EXISTS (
    SELECT 1 FROM json_each(:queues) AS wanted
    WHERE EXISTS (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE queue = wanted.value AND status = 'pending'
        AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
    )
) OR EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
)

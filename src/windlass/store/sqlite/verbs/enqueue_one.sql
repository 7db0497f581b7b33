-- name: queue_state
-- What the enqueue of one job needs: the queue's default attempts and timeout, whether it is fair, and the last pending rank. No
-- row if the queue is new or closed, or a stored id is as high as the new one, which is rare because ids grow with time.
SELECT max_attempts, timeout, fair,
    (
        SELECT rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE queue = :queue AND sort_priority = :sort_priority AND status = 'pending'
        ORDER BY rank DESC LIMIT 1
    )
FROM windlass_queues
WHERE name = :queue AND NOT closed
    AND NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE id >= :id)
    AND NOT EXISTS (SELECT 1 FROM windlass_history WHERE id >= :id)
    AND NOT EXISTS (SELECT 1 FROM windlass_tombstones WHERE id >= :id)

-- name: enqueue_one
INSERT INTO windlass_jobs (
    id, payload, queue, type, status, sort_priority, rank, run_at, max_attempts, created_at, updated_at, tenant, tenant_queue,
    parent, flow, timeout, expires_at, tags, meta
) VALUES (
    :id, :payload, :queue, :type, :status, :sort_priority, :rank, :run_at, :max_attempts, :now, :now, :tenant, :tenant_queue,
    :parent, :flow, :timeout, :expires_at, :tags, :meta
)

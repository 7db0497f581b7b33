-- The slots of all quotas of a queue.
SELECT coalesce(sum(slots), 0)::bigint FROM windlass.quotas WHERE queue = :queue::text

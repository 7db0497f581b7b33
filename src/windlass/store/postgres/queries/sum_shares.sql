-- What all runners together may run of a queue.
SELECT coalesce(sum(slots), 0)::bigint FROM windlass.shares WHERE queue = :queue::text

-- The position of a live job in the order of its queue.
SELECT sort_priority, rank FROM windlass.jobs WHERE id = :id::uuid

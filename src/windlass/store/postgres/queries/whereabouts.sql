-- Where a live job stands in the order of its queue.
SELECT urgency, rank FROM windlass.jobs WHERE id = :id::uuid

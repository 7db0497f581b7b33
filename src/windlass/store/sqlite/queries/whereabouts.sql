-- Where a live job stands in the order of its queue.
SELECT urgency, rank FROM windlass_jobs WHERE id = :id

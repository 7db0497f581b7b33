-- The watermarks of fair queues.
SELECT watermark.queue, watermark.sort_priority, watermark.rank FROM windlass.queues AS queue
JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name WHERE queue.fair ORDER BY watermark.queue, watermark.sort_priority

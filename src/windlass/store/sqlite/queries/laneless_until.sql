-- Where a portion of jobs ends that begins after an id; no row: it is the last.
SELECT id FROM windlass_jobs WHERE id > :after ORDER BY id LIMIT 1 OFFSET :jobs

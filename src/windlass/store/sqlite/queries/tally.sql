-- Count a finished job in or out.
INSERT INTO windlass_tallies (queue, status, jobs) VALUES (:queue, :status, :change)
ON CONFLICT (queue, status) DO UPDATE SET jobs = jobs + excluded.jobs

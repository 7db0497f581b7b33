-- Keep how many jobs there were, unless somebody has looked as often.
INSERT INTO windlass_depths (step, slot, queue, looks, jobs, most, oldest)
VALUES (:step, :slot, :queue, :looks, :jobs, :most, :oldest)
ON CONFLICT (step, slot, queue) DO UPDATE SET
    looks = excluded.looks, jobs = excluded.jobs, most = excluded.most, oldest = excluded.oldest
WHERE excluded.looks > looks

-- These are first in line, [[id, slot], …]: they may run, behind those that wait already.
UPDATE windlass_jobs SET status = 'pending', reason = NULL, slot = taken.value ->> 1, rank = :now, updated_at = :now
FROM json_each(:batch) AS taken WHERE windlass_jobs.id = taken.value ->> 0

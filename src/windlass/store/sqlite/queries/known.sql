-- Which of these ids have been handed in before. All three places are read in one statement, so that a job
-- that is just moving from one to another is never missed.
SELECT id FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id FROM windlass_tombstones WHERE id IN (SELECT value FROM json_each(:ids))

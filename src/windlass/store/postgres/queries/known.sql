-- Which of these ids have been handed in before and are over. Live jobs are met by the insert itself; this is a later
-- statement than that, so that a job that moved into history meanwhile is seen there.
SELECT id::text FROM windlass.history WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

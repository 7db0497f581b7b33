-- Which of these ids belong to ended jobs. A later statement than the insert, which conflicts with live ones, so that
-- it sees a job that ended meanwhile.
SELECT id::text FROM windlass.history WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

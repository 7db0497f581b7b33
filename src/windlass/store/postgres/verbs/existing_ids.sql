-- Which of these ids are known.
SELECT id::text FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.history WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

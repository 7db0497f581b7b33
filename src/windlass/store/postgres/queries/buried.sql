-- How dropped jobs' last attempts ended.
SELECT id::text, attempt, outcome FROM windlass.tombstones WHERE id = ANY(:ids::uuid[])

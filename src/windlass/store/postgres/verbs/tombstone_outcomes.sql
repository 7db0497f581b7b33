-- The last attempts of dropped jobs, and their outcomes.
SELECT id::text, attempt, outcome FROM windlass.tombstones WHERE id = ANY(:ids::uuid[])

-- How the last attempts of these ended, of which nothing else is remembered.
SELECT id::text, coalesce(outcome, '') FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

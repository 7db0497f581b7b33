-- How the last attempts of these ended, of which nothing else is remembered.
SELECT id, coalesce(outcome, '') FROM windlass_tombstones
WHERE id IN (SELECT value FROM json_each(:ids)) AND until > :now

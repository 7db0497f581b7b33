-- Migrations that this version does not know.
SELECT name, breaking FROM windlass.schema WHERE number > :newest ORDER BY number

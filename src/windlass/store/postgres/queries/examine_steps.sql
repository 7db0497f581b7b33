-- Which steps of the schema are applied.
SELECT number, name, breaking FROM windlass.schema ORDER BY number

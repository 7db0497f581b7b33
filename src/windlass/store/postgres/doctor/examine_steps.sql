-- The applied migrations.
SELECT number, name, breaking FROM windlass.schema ORDER BY number

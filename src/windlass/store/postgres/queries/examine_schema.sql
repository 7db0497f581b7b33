-- Whether there is a table of this name.
SELECT to_regclass(:name::text) IS NOT NULL

-- Somebody is here. The caller has locked the row.
UPDATE windlass.pulse SET at = :moment::bigint WHERE one = 1

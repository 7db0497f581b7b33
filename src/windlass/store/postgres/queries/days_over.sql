-- Days that are over and may have left jobs on their shelves, and whether a later day has the same shelf by now.
SELECT old.day, EXISTS (
    SELECT FROM windlass.tallies AS later WHERE later.day > old.day AND (later.day - old.day) % 32 = 0
)
FROM (SELECT DISTINCT day FROM windlass.tallies WHERE day >= 0 AND day < :now / 86400000000) AS old
ORDER BY old.day

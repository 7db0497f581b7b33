-- Days that are over and may have jobs in their partitions, and whether a later day uses the same partition by now.
SELECT old.day, EXISTS (
    SELECT FROM windlass.history_counts AS later WHERE later.day > old.day AND (later.day - old.day) % 32 = 0
)
FROM (SELECT DISTINCT day FROM windlass.history_counts WHERE day >= 0 AND day < :now / 86400000000) AS old
ORDER BY old.day

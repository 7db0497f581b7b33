-- The buckets of a queue ('') and of keys in it; who has none has not spent anything yet.
SELECT key, credit, period, at FROM windlass_gates
WHERE queue = :queue AND key IN (SELECT value FROM json_each(:keys))

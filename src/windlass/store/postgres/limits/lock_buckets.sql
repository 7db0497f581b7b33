-- Lock buckets in order; locked and missing ones are left out.
SELECT key, credit, period, at, :now FROM windlass.buckets
WHERE queue = :queue::text AND key = ANY(:keys::text[]) ORDER BY key COLLATE "C" FOR NO KEY UPDATE SKIP LOCKED

-- The buckets of a queue and of a key in it.
SELECT key, credit, period, at FROM windlass.buckets WHERE queue = :queue::text AND key IN ('', :key::text)

-- The buckets of tokens of a queue and of a key in it.
SELECT key, credit, period, at FROM windlass_gates WHERE queue = :queue AND key IN ('', :key)

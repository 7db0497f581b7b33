-- The job that stands under a key.
SELECT job FROM windlass_keys WHERE queue = :queue AND hash = :hash

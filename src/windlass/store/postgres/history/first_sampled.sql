-- The oldest sample from a moment on.
SELECT min(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :at_least::bigint

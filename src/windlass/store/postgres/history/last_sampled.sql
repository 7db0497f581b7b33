-- The newest sample up to a moment.
SELECT max(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start <= :at_most::bigint

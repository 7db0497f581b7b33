-- The oldest minute or hour that was made, from one on: the beginning of a range of the primary key.
SELECT min(slot) FROM windlass.samples WHERE step = :step::bigint AND slot >= :at_least::bigint

-- The oldest minute or hour that was made, from one on: the beginning of a range of the primary key.
SELECT min(slot) FROM windlass_samples WHERE step = :step AND slot >= :at_least

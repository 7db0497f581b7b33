-- The newest minute or hour that was made, up to one: the end of a range of the primary key.
SELECT max(slot) FROM windlass_samples WHERE step = :step AND slot <= :at_most

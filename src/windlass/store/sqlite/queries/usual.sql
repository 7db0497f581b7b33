-- How long attempts of a type took in a queue, slot by slot.
SELECT run FROM windlass_meters WHERE slot >= :since AND queue = :queue AND type = :type

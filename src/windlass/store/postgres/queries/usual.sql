-- How long attempts of a type took in a queue, slot by slot.
SELECT run FROM windlass.meters WHERE slot >= :since::bigint AND queue = :queue::text AND type = :type::text

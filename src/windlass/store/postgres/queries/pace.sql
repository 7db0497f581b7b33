-- How many attempts of a queue ended in each slot.
SELECT slot, sum(completed + failed + dead + cancelled + snoozed + crashed)::bigint FROM windlass.meters
WHERE slot >= :since::bigint AND queue = :queue::text GROUP BY slot

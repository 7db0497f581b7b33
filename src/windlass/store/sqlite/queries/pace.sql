-- How many attempts of a queue ended in each slot.
SELECT slot, sum(completed + failed + dead + cancelled + snoozed + crashed) FROM windlass_meters
WHERE slot >= :since AND queue = :queue GROUP BY slot

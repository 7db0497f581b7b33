-- Attempts of a queue that ended, by interval.
SELECT interval_start, sum(completed + failed + dead + cancelled + snoozed + crashed)::bigint FROM windlass.meters
WHERE interval_start >= :since::bigint AND queue = :queue::text GROUP BY interval_start

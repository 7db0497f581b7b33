-- name: typical_durations
SELECT run FROM windlass.meters WHERE interval_start >= :since::bigint AND queue = :queue::text AND type = :type::text

-- name: worker_of_runner
SELECT worker FROM windlass.leases WHERE runner = :runner::text

-- name: sort_key
SELECT sort_priority, rank FROM windlass.jobs WHERE id = :id::uuid

-- name: why_token_buckets
SELECT key, credit, period, at FROM windlass.token_buckets WHERE queue = :queue::text AND key IN ('', :key::text)

-- name: parents
-- Live parents first.
SELECT id::text, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text, status, finished_at, run_at, worker FROM windlass.history WHERE id = ANY(:ids::uuid[])
LIMIT :max_named::bigint

-- name: throughput
SELECT interval_start, sum(completed + failed + dead + cancelled + snoozed + crashed)::bigint FROM windlass.meters
WHERE interval_start >= :since::bigint AND queue = :queue::text GROUP BY interval_start

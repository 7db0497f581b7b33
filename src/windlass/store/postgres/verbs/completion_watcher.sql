-- name: watch_results
-- Record that a client waits for the ends of these jobs on its channel.
INSERT INTO windlass.result_waits (job, channel, until)
SELECT job, :channel::text, :now + :length::bigint FROM unnest(:ids::uuid[]) AS wanted (job) ORDER BY job
ON CONFLICT (job, channel) DO UPDATE SET until = excluded.until

-- name: unwatch_results
-- Record that the client of this channel no longer waits for these jobs.
DELETE FROM windlass.result_waits WHERE job = ANY(:ids::uuid[]) AND channel = :channel::text

-- A client waits for these jobs on its channel.
INSERT INTO windlass.result_waits (job, channel, until)
SELECT job, :channel::text, :now + :length::bigint FROM unnest(:ids::uuid[]) AS wanted (job) ORDER BY job
ON CONFLICT (job, channel) DO UPDATE SET until = excluded.until

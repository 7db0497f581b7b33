-- Somebody waits for these jobs, and hears of them on his channel.
INSERT INTO windlass.awaited (job, channel, until)
SELECT job, :channel::text, :now + :length::bigint FROM unnest(:ids::uuid[]) AS wanted (job) ORDER BY job
ON CONFLICT (job, channel) DO UPDATE SET until = excluded.until

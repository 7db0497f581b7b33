-- The client of this channel no longer waits for these jobs.
DELETE FROM windlass.result_waits WHERE job = ANY(:ids::uuid[]) AND channel = :channel::text

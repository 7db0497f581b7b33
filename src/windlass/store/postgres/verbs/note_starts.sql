-- Running attempts, locked by the caller, have started.
UPDATE windlass.jobs AS job SET started_at = job.claimed_at + new.after
FROM unnest(:ids::uuid[], :afters::bigint[]) AS new (id, after)
WHERE job.id = new.id AND job.started_at IS NULL

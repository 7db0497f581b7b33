-- New reasons of cancelled jobs, locked by the caller.
UPDATE windlass.history AS job SET reason = one.reason
FROM unnest(:ids::uuid[], :reasons::text[]) AS one (id, reason) WHERE job.id = one.id AND job.id = ANY (:ids::uuid[])

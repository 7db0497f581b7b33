-- Cancelled jobs that another parent holds back now. The caller has locked them.
UPDATE windlass.history AS job SET reason = one.reason
FROM unnest(:ids::uuid[], :reasons::text[]) AS one (id, reason) WHERE job.id = one.id AND job.id = ANY (:ids::uuid[])

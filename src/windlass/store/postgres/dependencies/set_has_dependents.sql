-- Other jobs wait for these, which the caller has locked or inserted.
UPDATE windlass.jobs SET has_dependents = true WHERE id = ANY (:ids::uuid[]) AND NOT has_dependents

-- Release the dependents of completed jobs that the caller has locked; returns how many may run now.
SELECT windlass.release_dependents(array_agg(id), array_agg(result), :now, 0) FROM windlass.history WHERE id = ANY (:ids::uuid[])

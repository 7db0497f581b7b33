-- Completed jobs that are in history, and that the caller holds, pass on what they have: how many may run now.
SELECT windlass.pass_on(array_agg(id), array_agg(result), :now, 0) FROM windlass.history WHERE id = ANY (:ids::uuid[])

-- Lock finished parents, in order, against revival and dropping.
SELECT id::text, status, queue FROM windlass.history AS job WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.partition FOR KEY SHARE

-- Lock live parents, in order: none ends before the commit. A parent that ends while we wait is not among them.
SELECT id::text, status, queue FROM windlass.jobs AS job WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR NO KEY UPDATE

-- Jobs that others are to wait for and that have not ended, each locked, in order: none of them ends before that is
-- stored. One that ends while we wait for it is not among them.
SELECT id::text, status, queue FROM windlass.jobs AS job WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR NO KEY UPDATE

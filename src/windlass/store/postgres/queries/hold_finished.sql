-- Jobs that others are to wait for and that have ended, in order: nobody revives or drops them until that is stored.
SELECT id::text, status, queue FROM windlass.history AS job WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.shelf FOR KEY SHARE

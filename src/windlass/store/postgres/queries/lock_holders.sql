-- Of jobs that may have to give way: those that nobody is just claiming or ending, with their status.
SELECT id::text, status FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) FOR UPDATE SKIP LOCKED

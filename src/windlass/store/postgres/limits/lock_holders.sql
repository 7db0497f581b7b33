-- Lock jobs that may have to be replaced, unless they are being claimed or ended.
SELECT id::text, status FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) FOR UPDATE SKIP LOCKED

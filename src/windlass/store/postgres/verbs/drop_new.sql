-- Delete jobs that were inserted in this transaction, and had ended before.
DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[])

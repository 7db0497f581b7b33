-- They were there before, and are over: what was inserted a moment ago, in this transaction, must not stand.
DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[])

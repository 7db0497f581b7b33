-- What a runner runs, according to the store.
SELECT id::text, attempt, queue FROM windlass.jobs WHERE worker = :runner::text AND status = 'running'

-- What the store thinks a runner is running.
SELECT id::text, attempt, queue FROM windlass.jobs WHERE worker = :runner::text AND status = 'running'

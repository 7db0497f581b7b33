-- Whether a waiting job has expired, by the partial index.
SELECT EXISTS (
    SELECT FROM windlass.jobs WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
)

-- Whether the time of any waiting job is over: one step in an index that is empty unless jobs expire.
SELECT EXISTS (
    SELECT FROM windlass.jobs WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
)

-- Add queues where there are none. They are searched first: in a caller's transaction with an old snapshot an INSERT
-- that conflicts with a changed row is a serialization failure.
INSERT INTO windlass.queues (
    name, declared, changed, paused, paused_until, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead
)
SELECT new.name, :declared::text, :changed::text, :paused::boolean, :paused_until::bigint, :max_attempts::integer,
    :timeout::bigint, :keep_completed::bigint, :keep_cancelled::bigint, :keep_dead::bigint
FROM unnest(:names::text[]) WITH ORDINALITY AS new (name, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.queues AS old WHERE old.name = new.name) ORDER BY place
ON CONFLICT (name) DO NOTHING

-- A queue is used with this urgency for the first time. It is looked for first: for a caller's transaction with an old
-- snapshot an insert that meets a row which was changed since is a serialization failure.
INSERT INTO windlass.floors (queue, urgency)
SELECT :queue::text, :urgency::integer
WHERE NOT EXISTS (SELECT 1 FROM windlass.floors WHERE queue = :queue::text AND urgency = :urgency::integer)
ON CONFLICT DO NOTHING

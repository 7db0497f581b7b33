-- Add full buckets where there are none.
INSERT INTO windlass.buckets (queue, key, credit, period, at, full_at)
SELECT :queue::text, new.key, new.credit, new.period, :now, :now
FROM unnest(:keys::text[], :credits::bigint[], :periods::bigint[]) WITH ORDINALITY AS new (key, credit, period, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.buckets AS old WHERE old.queue = :queue::text AND old.key = new.key)
ORDER BY place
ON CONFLICT (queue, key) DO NOTHING

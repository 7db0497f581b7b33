-- Silence up to this moment is forgiven. The caller has locked the row.
UPDATE windlass.lease_activity SET at = :moment::bigint, seen_at = :moment::bigint, graced_until = :graced_until::bigint WHERE one = 1

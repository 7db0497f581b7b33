-- Delete old meters.
DELETE FROM windlass.meters WHERE interval_start < :before::bigint

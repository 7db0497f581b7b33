-- Statistics of slots that nobody asks for any more.
DELETE FROM windlass.meters WHERE slot < :before::bigint

-- Statistics of slots that nobody asks for any more.
DELETE FROM windlass_meters WHERE slot < :before

-- He who hears on this channel waits for these jobs no more.
DELETE FROM windlass.awaited WHERE job = ANY(:ids::uuid[]) AND channel = :channel::text

-- Jobs that somebody waits for: whoever ends one tells of it, on the channel of who waits.
-- breaking: no

-- A row goes with the end of its job, or when who waited gives up; those that are left by the dead are old one day.
-- What a crash of the server empties, who waits writes again: his connection is gone with it.
CREATE UNLOGGED TABLE windlass.awaited (
    job     uuid NOT NULL,
    channel text NOT NULL,
    until   bigint NOT NULL,
    PRIMARY KEY (job, channel)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX awaited_until ON windlass.awaited (until);

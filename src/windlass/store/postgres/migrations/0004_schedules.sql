-- Schedules: what is to be handed in again and again, and which job belongs to which of their ticks.
-- breaking: yes

-- Which schedule handed a job in, and for which moment; NULL is of none: somebody handed it in, or ran it at once.
ALTER TABLE windlass.jobs ADD COLUMN schedule text, ADD COLUMN tick bigint;
ALTER TABLE windlass.history ADD COLUMN schedule text, ADD COLUMN tick bigint;

-- A row is written with every tick of its schedule, and leaves a dead one behind.
CREATE TABLE windlass.schedules (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    -- What the code says, and what an operator said; as JSON.
    declared   text NOT NULL,
    changed    text NOT NULL,
    paused     boolean NOT NULL,
    created_at bigint NOT NULL,
    -- The last tick that was seen to, and the first that nobody has seen to: NULL, if there is none to come.
    last_at    bigint,
    next_at    bigint,
    last_job   uuid,
    missed     bigint NOT NULL,
    skipped    bigint NOT NULL,
    -- Counts changes: what was decided on an older one is not done.
    revision   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- What is due, and when something will be.
CREATE INDEX schedules_due ON windlass.schedules (next_at, name) WHERE next_at IS NOT NULL AND NOT paused;

-- Schedules: what is to be handed in again and again, and which job belongs to which of their ticks.
-- breaking: yes

-- Which schedule handed a job in, and for which moment; NULL is of none: somebody handed it in, or ran it at once.
ALTER TABLE windlass_jobs ADD COLUMN schedule TEXT;
ALTER TABLE windlass_jobs ADD COLUMN tick INTEGER;
ALTER TABLE windlass_history ADD COLUMN schedule TEXT;
ALTER TABLE windlass_history ADD COLUMN tick INTEGER;

CREATE TABLE windlass_schedules (
    name       TEXT PRIMARY KEY,
    -- What the code says, and what an operator said; as JSON.
    declared   TEXT NOT NULL,
    changed    TEXT NOT NULL,
    paused     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- The last tick that was seen to, and the first that nobody has seen to: NULL, if there is none to come.
    last_at    INTEGER,
    next_at    INTEGER,
    last_job   TEXT,
    missed     INTEGER NOT NULL,
    skipped    INTEGER NOT NULL,
    -- Counts changes: what was decided on an older one is not done.
    revision   INTEGER NOT NULL
) WITHOUT ROWID;
-- What is due, and when something will be.
CREATE INDEX windlass_schedules_due ON windlass_schedules (next_at, name) WHERE next_at IS NOT NULL AND paused = 0;

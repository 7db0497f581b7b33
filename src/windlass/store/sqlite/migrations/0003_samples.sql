-- Samples: how it went and how many jobs there were, by the minute for a week and by the hour for more than a year.
-- breaking: no

-- What the meters said, added up for a step of a minute or an hour (in microseconds) that began at `slot`. A type ''
-- is the rest of a queue, a queue '' the rest of all: that row is there for every step that was made, be it empty.
CREATE TABLE windlass_samples (
    step      INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    queue     TEXT NOT NULL,
    type      TEXT NOT NULL,
    completed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    dead      INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    snoozed   INTEGER NOT NULL,
    crashed   INTEGER NOT NULL,
    wait      TEXT NOT NULL,
    run       TEXT NOT NULL,
    PRIMARY KEY (step, slot, queue, type)
) WITHOUT ROWID;

-- How many jobs a queue had, or all together under the queue '': by status as JSON, added up over so many looks, and
-- the most at any of them; and for how many microseconds the oldest pending one had waited at the worst.
CREATE TABLE windlass_depths (
    step   INTEGER NOT NULL,
    slot   INTEGER NOT NULL,
    queue  TEXT NOT NULL,
    looks  INTEGER NOT NULL,
    jobs   TEXT NOT NULL,
    most   TEXT NOT NULL,
    oldest INTEGER,
    PRIMARY KEY (step, slot, queue)
) WITHOUT ROWID;

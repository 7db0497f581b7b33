-- Samples: how it went and how many jobs there were, by the minute for a week and by the hour for more than a year.
-- breaking: no

-- What the meters said, added up for a step of a minute or an hour (in microseconds) that began at `slot`. A type ''
-- is the rest of a queue, a queue '' the rest of all: that row is there for every step that was made, be it empty.
-- Written once and hardly ever again, so there is nothing to clean but what is dropped in the end.
CREATE TABLE windlass.samples (
    step      bigint NOT NULL,
    slot      bigint NOT NULL,
    queue     text NOT NULL,
    type      text NOT NULL,
    completed bigint NOT NULL,
    failed    bigint NOT NULL,
    dead      bigint NOT NULL,
    cancelled bigint NOT NULL,
    snoozed   bigint NOT NULL,
    crashed   bigint NOT NULL,
    wait      text NOT NULL,
    run       text NOT NULL,
    PRIMARY KEY (step, slot, queue, type)
);

-- How many jobs a queue had, or all together under the queue '': by status as JSON, added up over so many looks, and
-- the most at any of them; and for how many microseconds the oldest pending one had waited at the worst.
CREATE TABLE windlass.depths (
    step   bigint NOT NULL,
    slot   bigint NOT NULL,
    queue  text NOT NULL,
    looks  bigint NOT NULL,
    jobs   text NOT NULL,
    most   text NOT NULL,
    oldest bigint,
    PRIMARY KEY (step, slot, queue)
);

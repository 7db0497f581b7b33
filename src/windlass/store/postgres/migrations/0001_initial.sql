-- The first schema: live jobs, finished jobs on shelves, keys, floors, leases, workers, the coordinator's office.
-- breaking: no

-- Jobs that have not ended. Small, so that its indexes stay small; `urgency` is the negated priority, so that one
-- ascending index serves the claim. Moments are microseconds since 1970, by the server's clock.
CREATE TABLE windlass.jobs (
    id               uuid NOT NULL PRIMARY KEY,
    queue            text NOT NULL,
    type             text NOT NULL,
    payload          text NOT NULL,
    status           text NOT NULL CHECK (status IN ('scheduled', 'blocked', 'pending', 'running', 'failed')),
    reason           text,
    urgency          integer NOT NULL,
    rank             bigint NOT NULL,
    run_at           bigint NOT NULL,
    attempt          integer NOT NULL DEFAULT 0,
    max_attempts     integer NOT NULL,
    failures         integer NOT NULL DEFAULT 0,
    crashes          integer NOT NULL DEFAULT 0,
    rescues          integer NOT NULL DEFAULT 0,
    suspicions       integer NOT NULL DEFAULT 0,
    hand_backs       integer NOT NULL DEFAULT 0,
    snoozes          integer NOT NULL DEFAULT 0,
    created_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    claimed_at       bigint,
    started_at       bigint,
    worker           text,
    claim            bigint,
    idempotency_key  text,
    concurrency_key  text,
    slot             integer,
    tenant           text,
    parent           uuid,
    flow             text,
    parents          text,
    -- Of one attempt, in microseconds; 0: any length.
    timeout          bigint NOT NULL DEFAULT 0,
    expires_at       bigint,
    cancel_requested boolean NOT NULL DEFAULT false,
    error            text,
    attempts         text,
    tags             text,
    meta             text,
    -- How long the key stays taken after the job ended; NULL: not at all.
    idempotency_window bigint
) WITH (
    fillfactor = 85,
    -- A hot table: every job is three row versions here. Clean often, in small bites, whatever the rest of the
    -- database does; statistics hardly matter, because every statement here has one good plan.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 2000
);

-- The claim: only what may run now, in the order in which it runs.
CREATE INDEX jobs_pending ON windlass.jobs (queue, urgency, rank, id) WHERE status = 'pending';
-- Admission: what waits for its time.
CREATE INDEX jobs_due ON windlass.jobs (run_at, id) WHERE status IN ('scheduled', 'failed');
-- What a runner holds; a repeated claim finds its own jobs here.
CREATE INDEX jobs_held ON windlass.jobs (worker, claim) WHERE status = 'running';
-- Blocked jobs, to count them, and parked ones, freed by type when a worker registers.
CREATE INDEX jobs_blocked ON windlass.jobs (queue) WHERE status = 'blocked';
CREATE INDEX jobs_parked ON windlass.jobs (type, id) WHERE reason = 'no worker for type';
-- Running jobs that were asked to stop.
CREATE INDEX jobs_cancelling ON windlass.jobs (worker) WHERE cancel_requested;
-- The newest failures; only jobs that fail pay for it.
CREATE INDEX jobs_failed ON windlass.jobs (updated_at) WHERE status = 'failed';
-- Waiting jobs that expire: empty, and nobody's cost, unless there are some.
CREATE INDEX jobs_expiring ON windlass.jobs (expires_at, id) WHERE expires_at IS NOT NULL AND status <> 'running';
-- The children of a job.
CREATE INDEX jobs_parent ON windlass.jobs (parent, id) WHERE parent IS NOT NULL;
-- At most one holder per slot of a key, whatever the admitters do.
CREATE UNIQUE INDEX jobs_slot ON windlass.jobs (queue, concurrency_key, slot) WHERE slot IS NOT NULL;

-- Jobs that have ended, until their retention is over. They stand on shelves: one for each day on which rows may be
-- dropped, 32 of them in a ring, emptied at once when the day is over. The dead have a shelf of their own, and what is
-- kept for less than a day or more than a month goes to the loose ones; those two are pruned row by row. The shelves
-- are there from the beginning: nothing is attached or detached while jobs settle, and none can be missing.
CREATE TABLE windlass.history (
    id               uuid NOT NULL,
    shelf            smallint NOT NULL,
    queue            text NOT NULL,
    type             text NOT NULL,
    payload          text NOT NULL,
    status           text NOT NULL CHECK (status IN ('completed', 'dead', 'cancelled')),
    reason           text,
    urgency          integer NOT NULL,
    run_at           bigint NOT NULL,
    attempt          integer NOT NULL,
    max_attempts     integer NOT NULL,
    failures         integer NOT NULL,
    crashes          integer NOT NULL,
    rescues          integer NOT NULL,
    suspicions       integer NOT NULL,
    hand_backs       integer NOT NULL,
    snoozes          integer NOT NULL,
    created_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    claimed_at       bigint,
    started_at       bigint,
    finished_at      bigint NOT NULL,
    drop_at          bigint NOT NULL,
    worker           text,
    idempotency_key  text,
    concurrency_key  text,
    tenant           text,
    parent           uuid,
    flow             text,
    parents          text,
    timeout          bigint NOT NULL,
    expires_at       bigint,
    cancel_requested boolean NOT NULL,
    result           text,
    error            text,
    attempts         text,
    tags             text,
    meta             text,
    idempotency_window bigint,
    PRIMARY KEY (id, shelf)
) PARTITION BY LIST (shelf);

-- Cancelled jobs and dead letters are looked for among millions of completed ones.
CREATE INDEX history_ended_badly ON windlass.history (status, id) WHERE status <> 'completed';
CREATE INDEX history_parent ON windlass.history (parent, id) WHERE parent IS NOT NULL;

DO $$
BEGIN
    FOR day IN 0..31 LOOP
        EXECUTE format('CREATE TABLE windlass.history_day_%s PARTITION OF windlass.history FOR VALUES IN (%s)',
                       lpad(day::text, 2, '0'), day);
    END LOOP;
END $$;
CREATE TABLE windlass.history_dead PARTITION OF windlass.history FOR VALUES IN (100);
CREATE TABLE windlass.history_loose PARTITION OF windlass.history DEFAULT;
CREATE INDEX history_dead_drop ON windlass.history_dead (drop_at);
CREATE INDEX history_dead_newest ON windlass.history_dead (finished_at);
CREATE INDEX history_loose_drop ON windlass.history_loose (drop_at);

-- The day on which a finished job may be dropped with its whole shelf: a number since 1970; -1: row by row.
CREATE FUNCTION windlass.drop_day(status text, ended bigint, keep bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN status = 'dead' OR keep NOT BETWEEN 86400000000 AND 2592000000000 THEN -1
        ELSE ((ended + keep) / 86400000000)::integer END
$$;
-- The shelf that it stands on until then.
CREATE FUNCTION windlass.shelf(status text, ended bigint, keep bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (CASE WHEN status = 'dead' THEN 100 WHEN keep NOT BETWEEN 86400000000 AND 2592000000000 THEN 101
        ELSE ((ended + keep) / 86400000000) % 32 END)::smallint
$$;

-- How many finished jobs there are: a row is added with every move into and out of history, and the coordinator adds
-- the rows up. Nobody waits for anybody's row, and no count walks millions of jobs. By drop day, so that a shelf that
-- is emptied takes its counts along.
CREATE TABLE windlass.tallies (
    queue  text NOT NULL,
    status text NOT NULL,
    day    integer NOT NULL,
    jobs   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Ids of jobs that were dropped early, so that handing them in again does not run them again; with the last attempt
-- and how it ended, so that a repeated settlement is told from a stale one.
-- Where nothing is kept there is one for every job: so they stand on shelves too, by the day on which they may be
-- forgotten, and cost one narrow row.
CREATE TABLE windlass.tombstones (
    id      uuid NOT NULL,
    shelf   smallint NOT NULL,
    attempt integer NOT NULL,
    outcome text,
    until   bigint NOT NULL
) PARTITION BY LIST (shelf);
CREATE INDEX tombstones_id ON windlass.tombstones (id);
CREATE TABLE windlass.tombstones_0 PARTITION OF windlass.tombstones FOR VALUES IN (0);
CREATE TABLE windlass.tombstones_1 PARTITION OF windlass.tombstones FOR VALUES IN (1);
CREATE TABLE windlass.tombstones_2 PARTITION OF windlass.tombstones FOR VALUES IN (2);

-- Idempotency keys: one row per key that is held, touched only by jobs that have one.
CREATE TABLE windlass.keys (
    queue text NOT NULL,
    hash  text NOT NULL,
    job   uuid NOT NULL,
    -- NULL while its job lives; then the end of the window in which the key stays taken.
    until bigint,
    PRIMARY KEY (queue, hash)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX keys_until ON windlass.keys (until) WHERE until IS NOT NULL;

-- Progress and log lines, only for jobs that have any.
CREATE TABLE windlass.notes (
    job      uuid NOT NULL PRIMARY KEY,
    progress text,
    logs     text
) WITH (fillfactor = 70);

-- Where claims begin: one row per queue and urgency that was ever used. Nothing is pending below `rank`, so that a
-- claim steps over what is dead and not yet cleaned. The coordinator raises it, whoever puts a job back lowers it;
-- `returns` counts those, so that neither undoes the other. See floors.py.
CREATE TABLE windlass.floors (
    queue   text NOT NULL,
    urgency integer NOT NULL,
    rank    bigint NOT NULL DEFAULT 0,
    returns bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, urgency)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The same for admission: nothing waits for a time before `due`.
CREATE TABLE windlass.due_floor (
    one integer NOT NULL PRIMARY KEY CHECK (one = 1),
    due bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO windlass.due_floor (one, due) VALUES (1, 0);

-- How many attempts of a type ended in a slot of time, and how, and how long they waited and ran: histograms as JSON,
-- bucket to count. Added to every few seconds by each runner, dropped after an hour.
CREATE TABLE windlass.meters (
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
    PRIMARY KEY (slot, queue, type)
) WITH (fillfactor = 70);

CREATE TABLE windlass.queues (
    name           text NOT NULL PRIMARY KEY,
    declared       text NOT NULL DEFAULT '{}',
    changed        text NOT NULL DEFAULT '{}',
    paused         boolean NOT NULL DEFAULT false,
    paused_until   bigint,
    -- What holds, worked out from the two above whenever they change, for statements to read.
    max_attempts   integer NOT NULL,
    timeout        bigint NOT NULL,
    keep_completed bigint NOT NULL,
    keep_cancelled bigint NOT NULL,
    keep_dead      bigint NOT NULL
);

-- One lease per runner, by the server's clock.
CREATE TABLE windlass.leases (
    runner     text NOT NULL PRIMARY KEY,
    worker     text NOT NULL,
    expires_at bigint NOT NULL,
    length     bigint NOT NULL,
    -- Whether it has had its grace since it was last renewed: one is enough, or nobody would ever be missed.
    graced     boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The last time anybody renewed a lease or looked for lapsed ones: silence of everybody is an outage.
CREATE TABLE windlass.pulse (
    one integer NOT NULL PRIMARY KEY CHECK (one = 1),
    at  bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE windlass.workers (
    id         text NOT NULL PRIMARY KEY,
    info       text NOT NULL,
    started_at bigint NOT NULL,
    beat_at    bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The coordinator's office.
CREATE TABLE windlass.office (
    one        integer NOT NULL PRIMARY KEY CHECK (one = 1),
    holder     text,
    term       bigint NOT NULL,
    expires_at bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- What these tables are told from others by: a caller's transaction that is to hold jobs must be of the same database.
CREATE TABLE windlass.identity (
    one integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO windlass.identity DEFAULT VALUES;

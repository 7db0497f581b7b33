-- The first schema: live jobs, finished jobs, keys, leases, workers, the coordinator's office.
-- breaking: no

-- Jobs that have not ended. Small, so that its indexes stay small; `urgency` is the negated priority, so
-- that one ascending index serves the claim.
CREATE TABLE windlass_jobs (
    id               TEXT PRIMARY KEY,
    queue            TEXT NOT NULL,
    type             TEXT NOT NULL,
    payload          TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('scheduled', 'blocked', 'pending', 'running', 'failed')),
    reason           TEXT,
    urgency          INTEGER NOT NULL,
    rank             INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    attempt          INTEGER NOT NULL DEFAULT 0,
    max_attempts     INTEGER NOT NULL,
    failures         INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    rescues          INTEGER NOT NULL DEFAULT 0,
    suspicions       INTEGER NOT NULL DEFAULT 0,
    hand_backs       INTEGER NOT NULL DEFAULT 0,
    snoozes          INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    claimed_at       INTEGER,
    started_at       INTEGER,
    worker           TEXT,
    claim            INTEGER,
    idempotency_key  TEXT,
    concurrency_key  TEXT,
    slot             INTEGER,
    tenant           TEXT,
    parent           TEXT,
    flow             TEXT,
    parents          TEXT,
    -- Of one attempt, in microseconds; 0: any length.
    timeout          INTEGER NOT NULL DEFAULT 0,
    expires_at       INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    error            TEXT,
    attempts         TEXT,
    tags             TEXT,
    meta             TEXT,
    -- How long the key stays taken after the job ended; NULL: not at all.
    idempotency_window INTEGER
) WITHOUT ROWID;

-- The claim: only what may run now, in the order in which it runs; `type` so that the walk past jobs that
-- this worker does not know stays inside the index.
CREATE INDEX windlass_jobs_pending ON windlass_jobs (queue, urgency, rank, id, type) WHERE status = 'pending';
-- Admission: what waits for its time.
CREATE INDEX windlass_jobs_due ON windlass_jobs (run_at, id) WHERE status IN ('scheduled', 'failed');
-- What a runner holds; a repeated claim finds its own jobs here.
CREATE INDEX windlass_jobs_held ON windlass_jobs (worker, claim) WHERE status = 'running';
-- Blocked jobs, to count them.
CREATE INDEX windlass_jobs_blocked ON windlass_jobs (queue) WHERE status = 'blocked';
-- Parked jobs, freed by type when a worker registers.
CREATE INDEX windlass_jobs_parked ON windlass_jobs (type, id) WHERE status = 'blocked' AND reason = 'no worker for type';
-- Running jobs that were asked to stop.
CREATE INDEX windlass_jobs_cancelling ON windlass_jobs (worker) WHERE cancel_requested = 1;
-- The newest failures; only jobs that fail pay for it.
CREATE INDEX windlass_jobs_failed ON windlass_jobs (updated_at) WHERE status = 'failed';
-- Waiting jobs that expire: empty, and nobody's cost, unless there are some.
CREATE INDEX windlass_jobs_expiring ON windlass_jobs (expires_at, id) WHERE expires_at IS NOT NULL AND status <> 'running';
-- The children of a job.
CREATE INDEX windlass_jobs_parent ON windlass_jobs (parent, id) WHERE parent IS NOT NULL;
-- At most one holder per slot of a key, whatever the admitters do.
CREATE UNIQUE INDEX windlass_jobs_slot ON windlass_jobs (queue, concurrency_key, slot) WHERE slot IS NOT NULL;

-- Jobs that have ended, until their retention is over.
CREATE TABLE windlass_history (
    id               TEXT PRIMARY KEY,
    queue            TEXT NOT NULL,
    type             TEXT NOT NULL,
    payload          TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('completed', 'dead', 'cancelled')),
    reason           TEXT,
    urgency          INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    crashes          INTEGER NOT NULL,
    rescues          INTEGER NOT NULL,
    suspicions       INTEGER NOT NULL,
    hand_backs       INTEGER NOT NULL,
    snoozes          INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    claimed_at       INTEGER,
    started_at       INTEGER,
    finished_at      INTEGER NOT NULL,
    drop_at          INTEGER NOT NULL,
    worker           TEXT,
    idempotency_key  TEXT,
    concurrency_key  TEXT,
    tenant           TEXT,
    parent           TEXT,
    flow             TEXT,
    parents          TEXT,
    timeout          INTEGER NOT NULL DEFAULT 0,
    expires_at       INTEGER,
    cancel_requested INTEGER NOT NULL,
    result           TEXT,
    error            TEXT,
    attempts         TEXT,
    tags             TEXT,
    meta             TEXT,
    -- How long the key stays taken after the job ended; NULL: not at all.
    idempotency_window INTEGER
) WITHOUT ROWID;

CREATE INDEX windlass_history_drop ON windlass_history (drop_at);
-- Dead letters and cancelled jobs are looked for among millions of completed ones.
CREATE INDEX windlass_history_ended_badly ON windlass_history (status, id) WHERE status <> 'completed';
-- The newest dead letters.
CREATE INDEX windlass_history_dead ON windlass_history (finished_at) WHERE status = 'dead';

CREATE INDEX windlass_history_parent ON windlass_history (parent, id) WHERE parent IS NOT NULL;

-- Ids of jobs that were dropped early, so that handing them in again does not run them again.
CREATE TABLE windlass_tombstones (
    id      TEXT PRIMARY KEY,
    -- The last attempt and how it ended, so that a repeated settlement is told from a stale one.
    attempt INTEGER NOT NULL,
    outcome TEXT,
    until   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX windlass_tombstones_until ON windlass_tombstones (until);

-- Idempotency keys: one row per key that is held, touched only by jobs that have one.
CREATE TABLE windlass_keys (
    queue TEXT NOT NULL,
    hash  TEXT NOT NULL,
    job   TEXT NOT NULL,
    -- NULL while its job lives; then the end of the window in which the key stays taken.
    until INTEGER,
    PRIMARY KEY (queue, hash)
) WITHOUT ROWID;
CREATE INDEX windlass_keys_until ON windlass_keys (until) WHERE until IS NOT NULL;

-- Progress and log lines, only for jobs that have any.
CREATE TABLE windlass_notes (
    job      TEXT PRIMARY KEY,
    progress TEXT,
    logs     TEXT
) WITHOUT ROWID;

-- How many finished jobs there are, kept with every move into and out of history: no count walks millions of rows.
CREATE TABLE windlass_tallies (
    queue  TEXT NOT NULL,
    status TEXT NOT NULL,
    jobs   INTEGER NOT NULL,
    PRIMARY KEY (queue, status)
) WITHOUT ROWID;

-- How many attempts of a type ended in a slot of time, and how, and how long they waited and ran: histograms as
-- JSON, bucket to count. Added to every few seconds by each runner, dropped after an hour.
CREATE TABLE windlass_meters (
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
    PRIMARY KEY (slot, queue, type)
) WITHOUT ROWID;

CREATE TABLE windlass_queues (
    name           TEXT PRIMARY KEY,
    declared       TEXT NOT NULL DEFAULT '{}',
    changed        TEXT NOT NULL DEFAULT '{}',
    paused         INTEGER NOT NULL DEFAULT 0,
    paused_until   INTEGER,
    -- What holds, worked out from the two above whenever they change, for statements to read.
    max_attempts   INTEGER NOT NULL,
    timeout        INTEGER NOT NULL,
    keep_completed INTEGER NOT NULL,
    keep_cancelled INTEGER NOT NULL,
    keep_dead      INTEGER NOT NULL
) WITHOUT ROWID;

-- One lease per runner. Times are those since boot: no change of the wall clock can end or prolong a lease.
CREATE TABLE windlass_leases (
    runner     TEXT PRIMARY KEY,
    worker     TEXT NOT NULL,
    boot       TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    -- Whether it has had its grace since it was last renewed: one is enough, or nobody would ever be missed.
    graced     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The last time anybody renewed a lease or looked for lapsed ones: silence of everybody is an outage.
CREATE TABLE windlass_pulse (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    boot TEXT NOT NULL,
    at   INTEGER NOT NULL
);

CREATE TABLE windlass_workers (
    id         TEXT PRIMARY KEY,
    info       TEXT NOT NULL,
    boot       TEXT NOT NULL,
    beat       INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- The coordinator's office.
CREATE TABLE windlass_office (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    holder     TEXT,
    term       INTEGER NOT NULL,
    boot       TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);

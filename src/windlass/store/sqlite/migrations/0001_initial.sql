-- The initial schema. All names begin with windlass_, because the file may have other tables.
-- breaking: no

-- Jobs that have not finished. The table is small, and so are its indexes. Rows are in the order of insertion, not of ids, so that
-- jobs that run together share pages; the links of a chain have neighbouring ids and run one by one (decision 0048).
CREATE TABLE windlass_jobs (
    id                  TEXT PRIMARY KEY NOT NULL,
    queue               TEXT NOT NULL,
    type                TEXT NOT NULL,
    payload             TEXT NOT NULL,
    status              TEXT NOT NULL CHECK (status IN ('scheduled', 'blocked', 'pending', 'running', 'failed')),
    reason              TEXT,
    -- The negated priority, so that one ascending index serves the claim; ageing has lowered it by `aged_by`.
    sort_priority       INTEGER NOT NULL,
    aged_by             INTEGER NOT NULL DEFAULT 0,
    rank                INTEGER NOT NULL,
    run_at              INTEGER NOT NULL,
    attempt             INTEGER NOT NULL DEFAULT 0,
    max_attempts        INTEGER NOT NULL,
    failures            INTEGER NOT NULL DEFAULT 0,
    crashes             INTEGER NOT NULL DEFAULT 0,
    rescues             INTEGER NOT NULL DEFAULT 0,
    suspicions          INTEGER NOT NULL DEFAULT 0,
    requeues            INTEGER NOT NULL DEFAULT 0,
    snoozes             INTEGER NOT NULL DEFAULT 0,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    claimed_at          INTEGER,
    started_at          INTEGER,
    worker              TEXT,
    claim               INTEGER,
    cancel_requested    INTEGER NOT NULL DEFAULT 0,
    -- The timeout of one attempt, in microseconds; 0: none.
    timeout             INTEGER NOT NULL DEFAULT 0,
    expires_at          INTEGER,
    error               TEXT,
    attempts            TEXT,
    tags                TEXT,
    meta                TEXT,
    idempotency_key     TEXT,
    -- How long the key stays taken after the job has finished; NULL: not at all.
    idempotency_window  INTEGER,
    -- In each setting of the key, NULL stands for the default.
    concurrency_key     TEXT,
    key_slot            INTEGER,
    key_limit           INTEGER,
    key_strict          INTEGER,
    key_rate            TEXT,
    rate_cost           INTEGER,
    -- `tenant_queue` is the tenant, or '', in a fair queue and NULL elsewhere.
    tenant              TEXT,
    tenant_queue        TEXT,
    -- The schedule and tick that enqueued the job.
    schedule            TEXT,
    tick                INTEGER,
    parent              TEXT,
    flow                TEXT,
    parents             TEXT,
    -- Which parameters get the results of which parents, [[parameter, parent], …]; the results so far, [[parent, result], …].
    result_params       TEXT,
    parent_results      TEXT,
    -- Parents that have not completed, and how long after the last of them the job is due.
    pending_parents     INTEGER NOT NULL DEFAULT 0,
    delay_after_parents INTEGER NOT NULL DEFAULT 0
);

-- The claim: pending jobs in the order in which they run; with `type`, so that jobs of unknown types are skipped in the index.
CREATE INDEX windlass_jobs_pending ON windlass_jobs (queue, sort_priority, rank, id, type) WHERE status = 'pending';
-- The claim of a fair queue: the next job of each tenant.
CREATE INDEX windlass_jobs_tenant_queue ON windlass_jobs (queue, sort_priority, tenant_queue, rank, id, type)
    WHERE tenant_queue IS NOT NULL AND status = 'pending';
-- Admission.
CREATE INDEX windlass_jobs_due ON windlass_jobs (run_at, id) WHERE status IN ('scheduled', 'failed');
-- The jobs of a runner; a repeated claim finds its jobs here. With the queue, so that the running jobs of one can be counted.
CREATE INDEX windlass_jobs_held ON windlass_jobs (worker, claim, queue) WHERE status = 'running';
-- Counts.
CREATE INDEX windlass_jobs_blocked ON windlass_jobs (queue) WHERE status = 'blocked';
-- Parked jobs by type, for the worker that knows the type.
CREATE INDEX windlass_jobs_parked ON windlass_jobs (type, id) WHERE status = 'blocked' AND reason = 'no worker for type';
-- Running jobs that were asked to stop.
CREATE INDEX windlass_jobs_cancelling ON windlass_jobs (worker) WHERE cancel_requested = 1;
-- The newest failures.
CREATE INDEX windlass_jobs_failed ON windlass_jobs (updated_at) WHERE status = 'failed';
-- Empty unless waiting jobs expire.
CREATE INDEX windlass_jobs_expiring ON windlass_jobs (expires_at, id) WHERE expires_at IS NOT NULL AND status <> 'running';
-- The children of a job.
CREATE INDEX windlass_jobs_parent ON windlass_jobs (parent, id) WHERE parent IS NOT NULL;
-- At most one job has each key slot.
CREATE UNIQUE INDEX windlass_jobs_key_slot ON windlass_jobs (queue, concurrency_key, key_slot) WHERE key_slot IS NOT NULL;
-- The next job for a key. Jobs of a strict key are ordered by when they were due, and not by priority.
CREATE INDEX windlass_jobs_waiting_for_key ON windlass_jobs
    (queue, concurrency_key, (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id)
    WHERE status = 'blocked' AND reason = 'waits for its concurrency key';

-- Finished jobs, until their retention is over; in the order in which they finished.
CREATE TABLE windlass_history (
    id                  TEXT PRIMARY KEY NOT NULL,
    queue               TEXT NOT NULL,
    type                TEXT NOT NULL,
    payload             TEXT NOT NULL,
    status              TEXT NOT NULL CHECK (status IN ('completed', 'dead', 'cancelled')),
    reason              TEXT,
    sort_priority       INTEGER NOT NULL,
    run_at              INTEGER NOT NULL,
    attempt             INTEGER NOT NULL,
    max_attempts        INTEGER NOT NULL,
    failures            INTEGER NOT NULL,
    crashes             INTEGER NOT NULL,
    rescues             INTEGER NOT NULL,
    suspicions          INTEGER NOT NULL,
    requeues            INTEGER NOT NULL,
    snoozes             INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    claimed_at          INTEGER,
    started_at          INTEGER,
    finished_at         INTEGER NOT NULL,
    drop_at             INTEGER NOT NULL,
    worker              TEXT,
    cancel_requested    INTEGER NOT NULL,
    timeout             INTEGER NOT NULL DEFAULT 0,
    expires_at          INTEGER,
    result              TEXT,
    error               TEXT,
    attempts            TEXT,
    tags                TEXT,
    meta                TEXT,
    idempotency_key     TEXT,
    idempotency_window  INTEGER,
    concurrency_key     TEXT,
    key_limit           INTEGER,
    key_strict          INTEGER,
    key_rate            TEXT,
    rate_cost           INTEGER,
    tenant              TEXT,
    schedule            TEXT,
    tick                INTEGER,
    parent              TEXT,
    flow                TEXT,
    parents             TEXT,
    result_params       TEXT,
    parent_results      TEXT,
    pending_parents     INTEGER NOT NULL DEFAULT 0,
    delay_after_parents INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX windlass_history_drop ON windlass_history (drop_at);
-- Dead and cancelled jobs among millions of completed ones.
CREATE INDEX windlass_history_ended_badly ON windlass_history (status, id) WHERE status <> 'completed';
-- The newest dead letters.
CREATE INDEX windlass_history_dead ON windlass_history (finished_at) WHERE status = 'dead';
CREATE INDEX windlass_history_parent ON windlass_history (parent, id) WHERE parent IS NOT NULL;

-- The number of finished jobs by queue and status, so that counting them never scans the history.
CREATE TABLE windlass_history_counts (
    queue  TEXT NOT NULL,
    status TEXT NOT NULL,
    jobs   INTEGER NOT NULL,
    PRIMARY KEY (queue, status)
) WITHOUT ROWID;

-- Ids of dropped jobs, so that a repeated enqueue does not run them again.
CREATE TABLE windlass_tombstones (
    id      TEXT PRIMARY KEY,
    -- The last attempt and its outcome, which distinguish a repeated settlement from a stale one.
    attempt INTEGER NOT NULL,
    outcome TEXT,
    until   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX windlass_tombstones_until ON windlass_tombstones (until);

-- Held idempotency keys.
CREATE TABLE windlass_idempotency_keys (
    queue TEXT NOT NULL,
    hash  TEXT NOT NULL,
    job   TEXT NOT NULL,
    -- NULL while the job is live; then the end of the key's window.
    until INTEGER,
    PRIMARY KEY (queue, hash)
) WITHOUT ROWID;
CREATE INDEX windlass_idempotency_keys_until ON windlass_idempotency_keys (until) WHERE until IS NOT NULL;

-- Which job waits for which. A row is kept until the parent completes or the child is dropped, also after the parent's death: a
-- retry of the parent then brings the child back.
CREATE TABLE windlass_dependencies (
    parent     TEXT NOT NULL,
    child      TEXT NOT NULL,
    when_ended INTEGER NOT NULL DEFAULT 0, -- whether the child waits for the parent's end, whatever the outcome
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;

-- Progress and log lines.
CREATE TABLE windlass_notes (
    job      TEXT PRIMARY KEY,
    progress TEXT,
    logs     TEXT
) WITHOUT ROWID;

-- Token buckets of keys and, with the key '', of queues: see core/flow/rate.py.
CREATE TABLE windlass_token_buckets (
    queue   TEXT NOT NULL,
    key     TEXT NOT NULL,
    credit  INTEGER NOT NULL,
    period  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    -- From then on the token bucket is full, and the row may be deleted.
    full_at INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX windlass_token_buckets_full ON windlass_token_buckets (full_at);

-- Queues: settings as the code declares them and as an operator changed them, and what follows from both.
CREATE TABLE windlass_queues (
    name            TEXT PRIMARY KEY,
    declared        TEXT NOT NULL DEFAULT '{}',
    changed         TEXT NOT NULL DEFAULT '{}',
    paused          INTEGER NOT NULL DEFAULT 0,
    paused_until    INTEGER,
    closed          INTEGER NOT NULL DEFAULT 0,
    max_attempts    INTEGER NOT NULL,
    timeout         INTEGER NOT NULL,
    keep_completed  INTEGER NOT NULL,
    keep_cancelled  INTEGER NOT NULL,
    keep_dead       INTEGER NOT NULL,
    -- NULL: no limit.
    max_concurrency INTEGER,
    rate_limit      TEXT,
    fair            INTEGER NOT NULL DEFAULT 0,
    ageing          INTEGER,
    -- While the jobs of a queue that became fair get their tenant queues, the last id that has one; else NULL.
    backfilled_to   TEXT,
    -- Whether claims must check limits: a concurrency limit, a rate or fairness; or (`rated`) a key with a rate.
    limited         INTEGER NOT NULL DEFAULT 0,
    rated           INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Schedules and their next ticks.
CREATE TABLE windlass_schedules (
    name       TEXT PRIMARY KEY,
    declared   TEXT NOT NULL,
    changed    TEXT NOT NULL,
    paused     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_at    INTEGER,
    -- NULL: there are no more ticks.
    next_at    INTEGER,
    last_job   TEXT,
    missed     INTEGER NOT NULL,
    skipped    INTEGER NOT NULL,
    -- Counts changes: a decision on an older revision is not applied.
    revision   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX windlass_schedules_due ON windlass_schedules (next_at, name) WHERE next_at IS NOT NULL AND paused = 0;

-- One lease per runner. Times count from boot, so that a change of the wall clock neither ends nor prolongs a lease.
CREATE TABLE windlass_leases (
    runner     TEXT PRIMARY KEY,
    worker     TEXT NOT NULL,
    boot       TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    -- Graces since the last renewal. Their number is limited, because a dead runner would otherwise never be found.
    graces     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- When any lease was last renewed: if no runner renews, that is an outage, not the death of one.
CREATE TABLE windlass_lease_activity (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    boot         TEXT NOT NULL,
    -- The last renewal, or the last forgiven silence.
    renewed_at   INTEGER NOT NULL,
    -- The last check for lapsed leases; written only while leases are in their grace.
    checked_at   INTEGER NOT NULL,
    graced_until INTEGER NOT NULL
);

-- The registry of workers.
CREATE TABLE windlass_workers (
    id         TEXT PRIMARY KEY,
    info       TEXT NOT NULL,
    boot       TEXT NOT NULL,
    -- The last beat since boot, and by the wall clock.
    beat       INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- The coordinator.
CREATE TABLE windlass_leadership (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    holder     TEXT,
    term       INTEGER NOT NULL,
    boot       TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);

-- Outcomes, wait and run times of attempts by interval, queue and type; histograms as JSON, bin to count. Kept for an hour.
CREATE TABLE windlass_meters (
    interval_start INTEGER NOT NULL,
    queue          TEXT NOT NULL,
    type           TEXT NOT NULL,
    completed      INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    dead           INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    snoozed        INTEGER NOT NULL,
    crashed        INTEGER NOT NULL,
    wait           TEXT NOT NULL,
    run            TEXT NOT NULL,
    PRIMARY KEY (interval_start, queue, type)
) WITHOUT ROWID;

-- Meters summed by the minute, kept for a week, and by the hour, kept for more than a year; `step` is the length in microseconds.
-- The type '' is the rest of a queue, and the queue '' the rest of all: that row exists for every step that was sampled.
CREATE TABLE windlass_samples (
    step           INTEGER NOT NULL,
    interval_start INTEGER NOT NULL,
    queue          TEXT NOT NULL,
    type           TEXT NOT NULL,
    completed      INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    dead           INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    snoozed        INTEGER NOT NULL,
    crashed        INTEGER NOT NULL,
    wait           TEXT NOT NULL,
    run            TEXT NOT NULL,
    PRIMARY KEY (step, interval_start, queue, type)
) WITHOUT ROWID;

-- The number of jobs of a queue, or of all queues under '': sums and maxima by status over the observations of a step, as JSON; and
-- the longest wait of the oldest pending job, in microseconds.
CREATE TABLE windlass_queue_depths (
    step           INTEGER NOT NULL,
    interval_start INTEGER NOT NULL,
    queue          TEXT NOT NULL,
    observations   INTEGER NOT NULL,
    jobs           TEXT NOT NULL,
    max_jobs       TEXT NOT NULL,
    oldest         INTEGER,
    PRIMARY KEY (step, interval_start, queue)
) WITHOUT ROWID;

-- Small JSON records beside the jobs, by kind: tokens, requests, actions, audit entries.
CREATE TABLE windlass_documents (
    kind        TEXT NOT NULL,
    id          TEXT NOT NULL,
    data        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    -- NULL: kept until it is deleted.
    expires_at  INTEGER,
    PRIMARY KEY (kind, id)
);

CREATE INDEX windlass_documents_by_end ON windlass_documents (expires_at) WHERE expires_at IS NOT NULL;

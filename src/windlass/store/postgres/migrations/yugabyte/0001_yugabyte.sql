-- The initial schema of the YugabyteDB profile.
-- breaking: no
--
-- The tables and columns of ../0001_initial.sql, which explains them, without partitions and storage parameters, and with
-- buckets: each job has one, by its id, and the indexes that would have a hot end begin with it. Every statement may be
-- repeated, and each is sent alone: a process that ends in between leaves nothing that the next cannot finish. Keys are HASH,
-- or ASC where their order is used. SPLIT AT BUCKETS stands for a split point between each two buckets. A plain PostgreSQL
-- gets this without HASH, ASC and SPLIT (migrate_stepwise.py).

-- Where admission begins: no job of a bucket is scheduled before `due`. One row per bucket, which says that there is one. Before
-- the function that puts jobs there: of two processes with different numbers one may end in between.
CREATE TABLE IF NOT EXISTS windlass.due_watermark (
    bucket smallint NOT NULL,
    due    bigint NOT NULL,
    PRIMARY KEY (bucket ASC)
);
INSERT INTO windlass.due_watermark (bucket, due) SELECT bucket, 0 FROM generate_series(0, :buckets - 1) AS bucket
ON CONFLICT (bucket) DO NOTHING;

-- The bucket of a job. Replaced when their number is raised: jobs keep the bucket that they have.
CREATE OR REPLACE FUNCTION windlass.bucket_of(id uuid) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ((get_byte(uuid_send(id), 14) * 256 + get_byte(uuid_send(id), 15)) % :buckets)::smallint
$$;

-- Jobs that have not ended.
CREATE TABLE IF NOT EXISTS windlass.jobs (
    id               uuid NOT NULL,
    bucket           smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    rank             bigint NOT NULL,
    run_at           bigint NOT NULL,
    created_at       bigint NOT NULL,
    -- Not changed by a claim: a running job was last changed at `claimed_at`, or later.
    updated_at       bigint NOT NULL,
    -- Of one attempt, in microseconds; 0: no limit.
    timeout          bigint NOT NULL DEFAULT 0,
    -- How long after its last parent completed it is due.
    delay_after_parents bigint NOT NULL DEFAULT 0,
    sort_priority    integer NOT NULL,
    -- By how much ageing has raised it: the priority it was enqueued with is -sort_priority - aged_by.
    aged_by          integer NOT NULL DEFAULT 0,
    max_attempts     integer NOT NULL,
    failures         integer NOT NULL DEFAULT 0,
    crashes          integer NOT NULL DEFAULT 0,
    rescues          integer NOT NULL DEFAULT 0,
    suspicions       integer NOT NULL DEFAULT 0,
    requeues         integer NOT NULL DEFAULT 0,
    snoozes          integer NOT NULL DEFAULT 0,
    pending_parents  integer NOT NULL DEFAULT 0,
    -- Whether another job waits, or has waited, for this one: only then does its end concern others. Set under the lock
    -- of the row, so a settlement that waited for that lock sees it although its own snapshot is older
    -- (docs/decisions/0034-dependents-flag.md).
    has_dependents   boolean NOT NULL DEFAULT false,
    cancel_requested boolean NOT NULL DEFAULT false,
    queue            text NOT NULL,
    -- The status, except that running jobs count as pending. Indexes use it instead of the status, so that a claim
    -- changes no indexed column (docs/decisions/0044-heap-only-claims.md).
    stage            text NOT NULL GENERATED ALWAYS AS (CASE status WHEN 'running' THEN 'pending' ELSE status END) STORED,
    type             text NOT NULL,
    payload          text NOT NULL,
    -- From here on: what a claim changes.
    attempt          integer NOT NULL DEFAULT 0,
    status           text NOT NULL CHECK (status IN ('pending', 'running', 'scheduled', 'failed', 'blocked')),
    reason           text,
    claimed_at       bigint,
    started_at       bigint,
    worker           text,
    claim            bigint,
    idempotency_key  text,
    -- How long the key stays taken after the job ended; NULL: not at all.
    idempotency_window bigint,
    concurrency_key  text,
    -- The slot of its concurrency key; NULL: it has none.
    key_slot             integer,
    key_limit        integer,
    key_strict       boolean,
    key_rate         text,
    rate_cost        integer,
    tenant           text,
    -- The tenant whose turn it waits for in a fair queue; NULL in other queues.
    tenant_queue     text COLLATE "C",
    parent           uuid,
    flow             text,
    parents          text,
    -- Which parameters get the results of which parents, [[parameter, parent], …], and the results so far,
    -- [[parent, result], …].
    result_params    text,
    parent_results   text,
    expires_at       bigint,
    error            text,
    attempts         text,
    tags             text,
    meta             text,
    -- The schedule that enqueued it, and for which tick; NULL: none.
    schedule         text,
    tick             bigint,
    PRIMARY KEY (id HASH)
-- On PostgreSQL each page keeps free room, so that a claim and an outcome add no index entries; on YugabyteDB updates never do.
) /*plain WITH (fillfactor = 45) */;

-- The claim: pending jobs in the order in which they run, bucket by bucket.
CREATE INDEX IF NOT EXISTS jobs_pending ON windlass.jobs (bucket ASC, queue ASC, sort_priority ASC, rank ASC, id ASC)
    SPLIT AT BUCKETS WHERE stage = 'pending';
-- The claim of a fair queue: the next jobs of each tenant. One part per queue.
CREATE INDEX IF NOT EXISTS jobs_tenant_queue ON windlass.jobs
    (queue COLLATE "C" HASH, sort_priority ASC, tenant_queue ASC, rank ASC, id ASC)
    WHERE tenant_queue IS NOT NULL AND stage = 'pending';
-- Admission: jobs that wait for their time.
CREATE INDEX IF NOT EXISTS jobs_due ON windlass.jobs (bucket ASC, run_at ASC, id ASC)
    SPLIT AT BUCKETS WHERE stage IN ('scheduled', 'failed');
-- Jobs that expire while they wait.
CREATE INDEX IF NOT EXISTS jobs_expiring ON windlass.jobs (bucket ASC, expires_at ASC, id ASC)
    SPLIT AT BUCKETS WHERE expires_at IS NOT NULL;
-- Lists.
CREATE INDEX IF NOT EXISTS jobs_by_id ON windlass.jobs (bucket ASC, id ASC) SPLIT AT BUCKETS;
CREATE INDEX IF NOT EXISTS jobs_blocked ON windlass.jobs (queue ASC) WHERE stage = 'blocked';
CREATE INDEX IF NOT EXISTS jobs_parked ON windlass.jobs (type ASC, id ASC) WHERE reason = 'no worker for type';
CREATE INDEX IF NOT EXISTS jobs_waiting_for_key ON windlass.jobs
    (queue ASC, concurrency_key ASC, (CASE WHEN key_strict THEN 0 ELSE sort_priority END) ASC, rank ASC, id ASC)
    WHERE reason = 'waits for its concurrency key';
CREATE UNIQUE INDEX IF NOT EXISTS jobs_key_slot ON windlass.jobs ((queue, concurrency_key) HASH, key_slot ASC) WHERE key_slot IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_cancelling ON windlass.jobs (id HASH) WHERE cancel_requested;
CREATE INDEX IF NOT EXISTS jobs_failed ON windlass.jobs (updated_at ASC) WHERE stage = 'failed';
CREATE INDEX IF NOT EXISTS jobs_parent ON windlass.jobs (parent HASH, id ASC) WHERE parent IS NOT NULL;

-- What runners hold: a row per claim and statement.
CREATE TABLE IF NOT EXISTS windlass.claims (
    runner text NOT NULL,
    claim  bigint NOT NULL,
    jobs   uuid[] NOT NULL,
    part   uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (runner ASC, claim ASC, part ASC)
);

-- Running jobs by runner and claim. Written so that every plan goes from the claims to the jobs.
CREATE OR REPLACE VIEW windlass.held_jobs AS
SELECT held.runner, held.claim, job.* FROM windlass.claims AS held CROSS JOIN LATERAL (
    SELECT id, queue, type, attempt, status, sort_priority, rank, run_at, claimed_at, bucket FROM windlass.jobs AS job
    WHERE job.id = ANY (held.jobs) AND job.claim = held.claim AND job.worker = held.runner AND job.status || '' = 'running'
    OFFSET 0
) AS job;

-- Finished jobs, until their retention is over. `partition` only tells dead jobs (100) from others.
CREATE TABLE IF NOT EXISTS windlass.history (
    id               uuid NOT NULL,
    bucket           smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    partition        smallint NOT NULL,
    queue            text NOT NULL,
    type             text NOT NULL,
    payload          text NOT NULL,
    status           text NOT NULL CHECK (status IN ('completed', 'dead', 'cancelled')),
    reason           text,
    sort_priority    integer NOT NULL,
    run_at           bigint NOT NULL,
    attempt          integer NOT NULL,
    max_attempts     integer NOT NULL,
    failures         integer NOT NULL,
    crashes          integer NOT NULL,
    rescues          integer NOT NULL,
    suspicions       integer NOT NULL,
    requeues         integer NOT NULL,
    snoozes          integer NOT NULL,
    created_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    claimed_at       bigint,
    started_at       bigint,
    finished_at      bigint NOT NULL,
    drop_at          bigint NOT NULL,
    worker           text,
    idempotency_key  text,
    idempotency_window bigint,
    concurrency_key  text,
    key_limit        integer,
    key_strict       boolean,
    key_rate         text,
    rate_cost        integer,
    tenant           text,
    parent           uuid,
    flow             text,
    parents          text,
    result_params    text,
    parent_results   text,
    pending_parents  integer NOT NULL DEFAULT 0,
    delay_after_parents bigint NOT NULL DEFAULT 0,
    timeout          bigint NOT NULL,
    expires_at       bigint,
    cancel_requested boolean NOT NULL,
    result           text,
    error            text,
    attempts         text,
    tags             text,
    meta             text,
    schedule         text,
    tick             bigint,
    PRIMARY KEY (id HASH)
);
-- Lists.
CREATE INDEX IF NOT EXISTS history_by_id ON windlass.history (bucket ASC, id ASC) SPLIT AT BUCKETS;
CREATE INDEX IF NOT EXISTS history_not_completed ON windlass.history (status ASC, id ASC) WHERE status <> 'completed';
CREATE INDEX IF NOT EXISTS history_parent ON windlass.history (parent HASH, id ASC) WHERE parent IS NOT NULL;
CREATE INDEX IF NOT EXISTS history_dead_newest ON windlass.history (finished_at ASC) WHERE status = 'dead';
-- Pruning.
CREATE INDEX IF NOT EXISTS history_drop ON windlass.history (bucket ASC, drop_at ASC) SPLIT AT BUCKETS;
-- Jobs by the moment at which they ended, for the event stream.
CREATE INDEX IF NOT EXISTS history_ended ON windlass.history (bucket ASC, finished_at ASC, id ASC) SPLIT AT BUCKETS;
-- Dead jobs: a partition in the other schema.
CREATE OR REPLACE VIEW windlass.history_dead AS SELECT * FROM windlass.history WHERE status = 'dead';

-- How many finished jobs there are: each move into or out of history adds a row, and the coordinator sums the rows up.
-- No transaction waits for another's row, and no count scans millions of jobs. `day` is always -1.
CREATE TABLE IF NOT EXISTS windlass.history_counts (
    queue  text NOT NULL,
    status text NOT NULL,
    day    integer NOT NULL,
    jobs   bigint NOT NULL,
    part   uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (part HASH)
);

-- The day on which the partition of a finished job is dropped: there are none, all are dropped row by row.
CREATE OR REPLACE FUNCTION windlass.drop_day(status text, ended bigint, keep bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT -1
$$;
CREATE OR REPLACE FUNCTION windlass.partition_of(status text, ended bigint, keep bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (CASE WHEN status = 'dead' THEN 100 ELSE 101 END)::smallint
$$;

-- Ids of dropped jobs, so that enqueueing one again does not run it again; with the last attempt and its outcome, to
-- tell a repeated settlement from a stale one. An id may be dropped, revived by its enqueue, and dropped again.
CREATE TABLE IF NOT EXISTS windlass.tombstones (
    id        uuid NOT NULL,
    bucket    smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    partition smallint NOT NULL,
    attempt   integer NOT NULL,
    outcome   text,
    until     bigint NOT NULL,
    part      uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (id HASH, part ASC)
);
CREATE INDEX IF NOT EXISTS tombstones_until ON windlass.tombstones (bucket ASC, until ASC) SPLIT AT BUCKETS;

-- One row per idempotency key that is held.
CREATE TABLE IF NOT EXISTS windlass.idempotency_keys (
    queue text NOT NULL,
    hash  text NOT NULL,
    job   uuid NOT NULL,
    -- NULL while its job lives; then the end of the window in which the key stays taken.
    until bigint,
    PRIMARY KEY (queue ASC, hash ASC)
);
CREATE INDEX IF NOT EXISTS idempotency_keys_until ON windlass.idempotency_keys (until ASC) WHERE until IS NOT NULL;

-- Progress and log lines of the jobs that have any.
CREATE TABLE IF NOT EXISTS windlass.notes (
    job      uuid NOT NULL,
    progress text,
    logs     text,
    PRIMARY KEY (job HASH)
);

-- Where claims begin: one row per queue, sort priority and bucket; those of all buckets are added together.
CREATE TABLE IF NOT EXISTS windlass.watermarks (
    queue         text NOT NULL,
    sort_priority integer NOT NULL,
    bucket        smallint NOT NULL,
    rank          bigint NOT NULL DEFAULT 0,
    returns       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY ((queue, sort_priority) HASH, bucket ASC)
);
-- Queues and sort priorities that have a watermark in every bucket, and the highest: no new job is below it.
CREATE OR REPLACE VIEW windlass.places AS
SELECT queue, sort_priority, max(rank) AS rank FROM windlass.watermarks GROUP BY queue, sort_priority
HAVING max(bucket) >= (SELECT max(bucket) FROM windlass.due_watermark);

-- What a claim locks: the row of bucket 0, to take jobs in their order, or rows of some buckets, to take jobs of those.
-- The rows never change.
CREATE TABLE IF NOT EXISTS windlass.claim_locks (
    queue  text NOT NULL,
    bucket smallint NOT NULL,
    PRIMARY KEY (queue HASH, bucket ASC)
);

-- Concurrency keys whose slots or waiting jobs changed. `tx` is the moment at which the row was added, by the clock of a
-- server: an admission that has seen all up to a moment looks only at those that transactions of that time may have added.
CREATE TABLE IF NOT EXISTS windlass.dirty_keys (
    queue text NOT NULL,
    key   text NOT NULL,
    tx    bigint NOT NULL DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    part  uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (queue HASH, tx ASC, part ASC)
);

-- Token buckets of concurrency keys and, with the key '', of queues: see core/flow/rate.py.
CREATE TABLE IF NOT EXISTS windlass.token_buckets (
    queue  text NOT NULL,
    key    text NOT NULL,
    credit bigint NOT NULL,
    period bigint NOT NULL,
    at     bigint NOT NULL,
    -- When it is full again if nothing is spent: then the row may be deleted.
    full_at bigint NOT NULL,
    PRIMARY KEY (queue HASH, key ASC)
);

-- What a runner may use of a limited queue: slots, and tokens until a moment. The slots of a queue never add up to more
-- than its limit. Deleted after the runner's lease and jobs. NULL slots: not counted yet.
CREATE TABLE IF NOT EXISTS windlass.quotas (
    queue  text NOT NULL,
    runner text NOT NULL,
    slots  integer,
    tokens integer NOT NULL DEFAULT 0,
    until  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue HASH, runner ASC)
);

-- Queues: what the code declares, what an operator changed, and the settings that follow from both.
CREATE TABLE IF NOT EXISTS windlass.queues (
    name            text NOT NULL,
    declared        text NOT NULL DEFAULT '{}',
    changed         text NOT NULL DEFAULT '{}',
    paused          boolean NOT NULL DEFAULT false,
    paused_until    bigint,
    closed          boolean NOT NULL DEFAULT false,
    max_attempts    integer NOT NULL,
    timeout         bigint NOT NULL,
    keep_completed  bigint NOT NULL,
    keep_cancelled  bigint NOT NULL,
    keep_dead       bigint NOT NULL,
    max_concurrency integer,
    rate_limit      text,
    fair            boolean NOT NULL DEFAULT false,
    ageing          bigint,
    -- Whether a claim has to look at limits: one of the three above, or (`rated`) a job whose key has a rate.
    limited         boolean NOT NULL DEFAULT false,
    rated           boolean NOT NULL DEFAULT false,
    PRIMARY KEY (name ASC)
);

-- Schedules. Each tick writes its row and leaves a dead version behind.
CREATE TABLE IF NOT EXISTS windlass.schedules (
    name       text COLLATE "C" NOT NULL,
    -- What the code declares and what an operator changed, as JSON.
    declared   text NOT NULL,
    changed    text NOT NULL,
    paused     boolean NOT NULL,
    created_at bigint NOT NULL,
    -- The last tick that was fired or skipped, and the next one; NULL: there is none.
    last_at    bigint,
    next_at    bigint,
    last_job   uuid,
    missed     bigint NOT NULL,
    skipped    bigint NOT NULL,
    -- Counts changes: a firing that was decided on an older revision is not done.
    revision   bigint NOT NULL,
    PRIMARY KEY (name ASC)
);
CREATE INDEX IF NOT EXISTS schedules_due ON windlass.schedules (next_at ASC, name ASC) WHERE next_at IS NOT NULL AND NOT paused;

-- One lease per runner.
CREATE TABLE IF NOT EXISTS windlass.leases (
    runner     text NOT NULL,
    worker     text NOT NULL,
    expires_at bigint NOT NULL,
    length     bigint NOT NULL,
    -- Graces since it was last renewed: their number is limited, or a dead runner would never be noticed.
    graces     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (runner ASC)
);

-- When leases were last renewed: if no runner renews, the store was out of reach.
CREATE TABLE IF NOT EXISTS windlass.lease_activity (
    one          integer NOT NULL CHECK (one = 1),
    -- The last renewal of any lease, or the last grace.
    at           bigint NOT NULL,
    -- The last search for lapsed leases; written only while leases are in their grace.
    seen_at      bigint NOT NULL,
    graced_until bigint NOT NULL,
    PRIMARY KEY (one HASH)
);

-- Workers, refreshed by their heartbeats.
CREATE TABLE IF NOT EXISTS windlass.workers (
    id         text NOT NULL,
    info       text NOT NULL,
    started_at bigint NOT NULL,
    beat_at    bigint NOT NULL,
    PRIMARY KEY (id ASC)
);

-- The coordinator.
CREATE TABLE IF NOT EXISTS windlass.leadership (
    one        integer NOT NULL CHECK (one = 1),
    holder     text,
    term       bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (one HASH)
);

-- Identifies these tables: a caller's transaction that enqueues jobs must be on the same database.
CREATE TABLE IF NOT EXISTS windlass.identity (
    one integer NOT NULL DEFAULT 1 CHECK (one = 1),
    id  uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (one HASH)
);
INSERT INTO windlass.identity (one) VALUES (1) ON CONFLICT (one) DO NOTHING;

-- Attempts that ended in an interval, by outcome, and how long they waited and ran: histograms as JSON, bin to count.
-- Each runner adds to it every few seconds; dropped after an hour.
CREATE TABLE IF NOT EXISTS windlass.meters (
    interval_start bigint NOT NULL,
    queue          text NOT NULL,
    type           text NOT NULL,
    completed      bigint NOT NULL,
    failed         bigint NOT NULL,
    dead           bigint NOT NULL,
    cancelled      bigint NOT NULL,
    snoozed        bigint NOT NULL,
    crashed        bigint NOT NULL,
    wait           text NOT NULL,
    run            text NOT NULL,
    PRIMARY KEY (interval_start ASC, queue ASC, type ASC)
);

-- Meters summed up over a step of a minute or an hour, in microseconds: by the minute for a week, by the hour for more
-- than a year. The type '' is the rest of a queue, the queue '' the rest of all: that row exists for every step.
CREATE TABLE IF NOT EXISTS windlass.samples (
    step           bigint NOT NULL,
    interval_start bigint NOT NULL,
    queue          text NOT NULL,
    type           text NOT NULL,
    completed      bigint NOT NULL,
    failed         bigint NOT NULL,
    dead           bigint NOT NULL,
    cancelled      bigint NOT NULL,
    snoozed        bigint NOT NULL,
    crashed        bigint NOT NULL,
    wait           text NOT NULL,
    run            text NOT NULL,
    PRIMARY KEY (step ASC, interval_start ASC, queue ASC, type ASC)
);

-- How many jobs a queue had, or all queues under '': by status as JSON, summed up over the observations of a step, and
-- the maximum of each; and how many microseconds the oldest pending job had waited at most.
CREATE TABLE IF NOT EXISTS windlass.queue_depths (
    step           bigint NOT NULL,
    interval_start bigint NOT NULL,
    queue          text NOT NULL,
    observations   bigint NOT NULL,
    jobs           text NOT NULL,
    max_jobs       text NOT NULL,
    oldest         bigint,
    PRIMARY KEY (step ASC, interval_start ASC, queue ASC)
);

-- Clients that wait for the end of a job: the statement that ends it notifies their channels and deletes the rows.
CREATE TABLE IF NOT EXISTS windlass.result_waits (
    job     uuid NOT NULL,
    channel text NOT NULL,
    until   bigint NOT NULL,
    PRIMARY KEY (job HASH, channel ASC)
);
CREATE INDEX IF NOT EXISTS result_waits_until ON windlass.result_waits (until ASC);

-- Small JSON records beside the jobs, by kind: tokens, requests, actions, audit entries. Ids are compared by bytes.
CREATE TABLE IF NOT EXISTS windlass.documents (
    kind        text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    data        text NOT NULL,
    version     bigint NOT NULL,
    created_at  bigint NOT NULL,
    -- NULL: kept until it is deleted.
    expires_at  bigint,
    PRIMARY KEY (kind ASC, id ASC)
);

CREATE INDEX IF NOT EXISTS documents_by_end ON windlass.documents (expires_at ASC) WHERE expires_at IS NOT NULL;

-- Which job waits for which: a row until the parent has completed, or the child is dropped. A row that outlives a dead
-- parent tells which jobs a retry of that parent brings back. Rows are only inserted and deleted.
CREATE TABLE IF NOT EXISTS windlass.dependencies (
    parent     uuid NOT NULL,
    child      uuid NOT NULL,
    when_ended boolean NOT NULL DEFAULT false, -- the child waits for the parent's end, however that is
    PRIMARY KEY (parent HASH, child ASC)
);

-- How often calls of a process were repeated because of a serialization failure or a deadlock, and how often its claims
-- found what they lock locked, by the minute; kept for a day.
CREATE TABLE IF NOT EXISTS windlass.conflicts (
    interval_start bigint NOT NULL,
    process        uuid NOT NULL,
    conflicts      bigint NOT NULL,
    lock_waits     bigint NOT NULL,
    PRIMARY KEY (interval_start ASC, process ASC)
);

-- Jobs that ended after a moment, or at it with a higher id, in that order: bucket by bucket, merged.
CREATE OR REPLACE FUNCTION windlass.ended(since bigint, after uuid, most integer) RETURNS SETOF windlass.history
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT job.* FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT * FROM windlass.history AS ended
        WHERE ended.bucket = part.bucket AND (ended.finished_at, ended.id) > (since, after)
        ORDER BY ended.finished_at, ended.id LIMIT most
    ) AS job ORDER BY job.finished_at, job.id LIMIT most;
END $$;

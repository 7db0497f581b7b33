-- The initial schema.
-- breaking: no

-- Jobs that have not ended. The table is small, so its indexes are small. `sort_priority` is the negated priority, so
-- that one ascending index serves the claim. Moments are microseconds since 1970, by the server's clock. Columns of a
-- fixed width that are never NULL come first: the server finds them at known offsets.
CREATE TABLE windlass.jobs (
    id               uuid NOT NULL PRIMARY KEY,
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
    -- changes no indexed column and its UPDATE is heap-only (docs/decisions/0044-heap-only-claims.md).
    stage            text NOT NULL GENERATED ALWAYS AS (CASE status WHEN 'running' THEN 'pending' ELSE status END) STORED,
    type             text NOT NULL,
    payload          text NOT NULL,
    -- From here on: what a claim changes. One part of the row, so that its WAL is short.
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
    tick             bigint
) WITH (
    -- Room for a second version of each row beside the first: the claim's.
    fillfactor = 45,
    -- A hot table: each job makes three row versions. Vacuum often, in small steps; statistics hardly matter, because
    -- every statement has one good plan.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 2000
);

-- The claim: pending jobs in the order in which they run, among them the running ones, which mostly are below the
-- watermark or the cursor. No index here may have a column that a claim changes, neither as key nor in its condition.
CREATE INDEX jobs_pending ON windlass.jobs (queue, sort_priority, rank, id) WHERE stage = 'pending';
-- The claim of a fair queue: the next jobs of each tenant. Another collation, so that no plan prefers jobs_pending.
CREATE INDEX jobs_tenant_queue ON windlass.jobs (queue COLLATE "C", sort_priority, tenant_queue, rank, id)
    WHERE tenant_queue IS NOT NULL AND stage = 'pending';
-- Admission: jobs that wait for their time.
CREATE INDEX jobs_due ON windlass.jobs (run_at, id) WHERE stage IN ('scheduled', 'failed');
-- Blocked jobs, to count them; parked ones, to release them by type when a worker registers.
CREATE INDEX jobs_blocked ON windlass.jobs (queue) WHERE stage = 'blocked';
CREATE INDEX jobs_parked ON windlass.jobs (type, id) WHERE reason = 'no worker for type';
-- The next job for a concurrency key. Strict order is the order of being due, and ignores priority. By the reason alone,
-- so that statements can be written for which no other index is of use.
CREATE INDEX jobs_waiting_for_key ON windlass.jobs
    (queue, concurrency_key, (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id)
    WHERE reason = 'waits for its concurrency key';
-- At most one holder per slot of a key, whatever concurrent admissions do.
CREATE UNIQUE INDEX jobs_key_slot ON windlass.jobs (queue, concurrency_key, key_slot) WHERE key_slot IS NOT NULL;
-- Running jobs that were asked to stop.
CREATE INDEX jobs_cancelling ON windlass.jobs (id) WHERE cancel_requested;
-- The newest failures.
CREATE INDEX jobs_failed ON windlass.jobs (updated_at) WHERE stage = 'failed';
-- Jobs that expire while they wait.
CREATE INDEX jobs_expiring ON windlass.jobs (expires_at, id) WHERE expires_at IS NOT NULL;
-- The children of a job.
CREATE INDEX jobs_parent ON windlass.jobs (parent, id) WHERE parent IS NOT NULL;

-- What runners hold: a row per claim, with the jobs that it took. It stays until none of them runs under this claim,
-- and is shortened meanwhile. A repeated claim finds its own jobs here.
CREATE TABLE windlass.claims (
    runner text NOT NULL,
    claim  bigint NOT NULL,
    jobs   uuid[] NOT NULL
) WITH (
    -- A claim of 400 jobs is not moved out of line.
    toast_tuple_target = 8160,
    autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02
);
ALTER TABLE windlass.claims ALTER COLUMN jobs SET STORAGE EXTERNAL;
CREATE INDEX claims_runner ON windlass.claims (runner, claim);

-- Running jobs by runner and claim. Written so that every plan goes from the claims to the jobs.
CREATE VIEW windlass.held_jobs AS
SELECT held.runner, held.claim, job.* FROM windlass.claims AS held CROSS JOIN LATERAL (
    SELECT id, queue, type, attempt, status, sort_priority, rank, run_at, claimed_at FROM windlass.jobs AS job
    WHERE job.id = ANY (held.jobs) AND job.claim = held.claim AND job.worker = held.runner AND job.status || '' = 'running'
    OFFSET 0
) AS job;

-- Finished jobs, until their retention is over. One partition per day on which rows may be dropped, 32 in a ring, each
-- truncated when its day is over. Dead jobs have a partition of their own; jobs kept for less than a day or more than a
-- month are in the default partition. Those two are pruned row by row. All partitions exist from the beginning: nothing
-- is attached or detached while jobs settle.
CREATE TABLE windlass.history (
    id               uuid NOT NULL,
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
    PRIMARY KEY (id, partition)
) PARTITION BY LIST (partition);

-- Cancelled and dead jobs among millions of completed ones.
CREATE INDEX history_not_completed ON windlass.history (status, id) WHERE status <> 'completed';
CREATE INDEX history_parent ON windlass.history (parent, id) WHERE parent IS NOT NULL;

DO $$
BEGIN
    FOR day IN 0..31 LOOP
        EXECUTE format('CREATE TABLE windlass.history_day_%s PARTITION OF windlass.history FOR VALUES IN (%s)',
                       lpad(day::text, 2, '0'), day);
    END LOOP;
END $$;
CREATE TABLE windlass.history_dead PARTITION OF windlass.history FOR VALUES IN (100);
CREATE TABLE windlass.history_default PARTITION OF windlass.history DEFAULT;
CREATE INDEX history_dead_drop ON windlass.history_dead (drop_at);
CREATE INDEX history_dead_newest ON windlass.history_dead (finished_at);
CREATE INDEX history_default_drop ON windlass.history_default (drop_at);

-- Jobs by the moment at which they ended, for the event stream. A summary per megabyte: an insert writes no entry for its job,
-- and what has no summary yet is read as a whole.
CREATE INDEX history_ended ON windlass.history USING brin (finished_at) WITH (pages_per_range = 128, autosummarize = on);
-- Jobs that ended after a moment, or at it with a higher id, in that order. The settings are those of sessions but for bitmap
-- scans, the only ones that read such an index.
CREATE FUNCTION windlass.ended(since bigint, after uuid, most integer) RETURNS SETOF windlass.history LANGUAGE plpgsql STABLE
SET enable_bitmapscan = on SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT * FROM windlass.history AS job
    WHERE job.finished_at >= since AND (job.finished_at > since OR job.id > after)
    ORDER BY job.finished_at, job.id LIMIT most;
END $$;

-- The day, counted since 1970, on which a finished job may be dropped with its whole partition; -1: row by row.
CREATE FUNCTION windlass.drop_day(status text, ended bigint, keep bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN status = 'dead' OR keep NOT BETWEEN 86400000000 AND 2592000000000 THEN -1
        ELSE ((ended + keep) / 86400000000)::integer END
$$;
-- The partition of a finished job.
CREATE FUNCTION windlass.partition_of(status text, ended bigint, keep bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (CASE WHEN status = 'dead' THEN 100 WHEN keep NOT BETWEEN 86400000000 AND 2592000000000 THEN 101
        ELSE ((ended + keep) / 86400000000) % 32 END)::smallint
$$;

-- How many finished jobs there are: each move into or out of history adds a row, and the coordinator sums the rows up.
-- No transaction waits for another's row, and no count scans millions of jobs. By drop day, so that the counts of a
-- truncated partition go with it.
CREATE TABLE windlass.history_counts (
    queue  text NOT NULL,
    status text NOT NULL,
    day    integer NOT NULL,
    jobs   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Ids of dropped jobs, so that enqueueing one again does not run it again; with the last attempt and its outcome, to
-- tell a repeated settlement from a stale one. Partitioned by the day on which they may be forgotten: where nothing is
-- kept, every job leaves one.
CREATE TABLE windlass.tombstones (
    id        uuid NOT NULL,
    partition smallint NOT NULL,
    attempt   integer NOT NULL,
    outcome   text,
    until     bigint NOT NULL
) PARTITION BY LIST (partition);
CREATE INDEX tombstones_id ON windlass.tombstones (id);
CREATE TABLE windlass.tombstones_0 PARTITION OF windlass.tombstones FOR VALUES IN (0);
CREATE TABLE windlass.tombstones_1 PARTITION OF windlass.tombstones FOR VALUES IN (1);
CREATE TABLE windlass.tombstones_2 PARTITION OF windlass.tombstones FOR VALUES IN (2);

-- One row per idempotency key that is held.
CREATE TABLE windlass.idempotency_keys (
    queue text NOT NULL,
    hash  text NOT NULL,
    job   uuid NOT NULL,
    -- NULL while its job lives; then the end of the window in which the key stays taken.
    until bigint,
    PRIMARY KEY (queue, hash)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX idempotency_keys_until ON windlass.idempotency_keys (until) WHERE until IS NOT NULL;

-- Progress and log lines of the jobs that have any.
CREATE TABLE windlass.notes (
    job      uuid NOT NULL PRIMARY KEY,
    progress text,
    logs     text
) WITH (fillfactor = 70);

-- Where claims begin: one row per queue and sort priority that was ever used. No job is pending below `rank`, so a claim
-- skips index entries that are dead and not yet vacuumed. The coordinator raises it; a statement that puts a job back
-- lowers it and increments `returns`, so that neither undoes the other. See limits/watermarks.py.
CREATE TABLE windlass.watermarks (
    queue         text NOT NULL,
    sort_priority integer NOT NULL,
    rank          bigint NOT NULL DEFAULT 0,
    returns       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, sort_priority)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The same for admission: no job is scheduled before `due`.
CREATE TABLE windlass.due_watermark (
    one integer NOT NULL PRIMARY KEY CHECK (one = 1),
    due bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO windlass.due_watermark (one, due) VALUES (1, 0);

-- Concurrency keys whose slots or waiting jobs changed. Statements only add rows, and an admission deletes those that it
-- looks at: no transaction waits for another's row. `tx` is the id of the transaction: an admission that has seen all
-- that had ended need not look at lower ones again. See limits/key_queue.py.
CREATE TABLE windlass.dirty_keys (
    queue text NOT NULL,
    key   text NOT NULL,
    tx    bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX dirty_keys_queue ON windlass.dirty_keys (queue, tx);
-- An admission takes all dirty rows of a key that it looks at. Another collation, so that no other plan prefers this index.
CREATE INDEX dirty_keys_key ON windlass.dirty_keys (queue COLLATE "C", key, tx);

-- Pass freed slots of concurrency keys on to the next jobs that wait for them, in one transaction with what frees them.
-- Returns how many jobs are pending. The number of held slots does not grow, whatever admissions do meanwhile, so the queue
-- is not locked. A locked job is neither waited for nor overtaken. A key becomes dirty instead if some slot cannot be passed
-- on, or more jobs than these have room: also if no job waits, because one that is not visible yet may have its own dirty
-- key processed before this transaction ends. Jobs with a rate are left to the admission, which marks their queue, and so
-- are several of a strict key: it admits one after the other. No rank is below `beyond`. Columns are compared as
-- expressions where another index, or any, must not be used.
CREATE FUNCTION windlass.pass_key_slots(of_queues text[], of_keys text[], of_slots integer[], moment bigint, beyond bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    passed integer;
    chosen integer;
BEGIN
    WITH freed AS MATERIALIZED (
        SELECT one.queue, one.key, array_agg(one.slot) AS numbers, count(*)::integer AS free
        FROM unnest(of_queues, of_keys, of_slots) AS one (queue, key, slot) GROUP BY one.queue, one.key
    ), head AS MATERIALIZED (
        -- One more job than there are slots: it may have room as well.
        SELECT freed.*, waiting.*, (
            SELECT count(*) FROM windlass.jobs AS holder
            WHERE waiting.row_refs IS NOT NULL
            AND holder.queue = freed.queue AND holder.concurrency_key = freed.key AND holder.key_slot IS NOT NULL
        ) AS held
        FROM freed CROSS JOIN LATERAL (
            SELECT array_agg(ctid) AS row_refs, least(count(*), freed.free) AS count, count(key_rate) AS rated,
                min(CASE WHEN key_strict THEN 1 ELSE key_limit END) AS lowest, max(key_limit) AS highest
            FROM (
                SELECT ctid, coalesce(key_limit, 1) AS key_limit, key_strict, key_rate FROM windlass.jobs
                WHERE queue = freed.queue AND concurrency_key = freed.key AND status || '' = 'blocked'
                AND reason = 'waits for its concurrency key'
                ORDER BY (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id LIMIT freed.free + 1
            ) AS job
        ) AS waiting
    ), next AS MATERIALIZED (
        SELECT head.*, CASE WHEN rated = 0 AND held + count <= lowest THEN (
            SELECT count(*) FROM (
                SELECT FROM windlass.jobs
                WHERE ctid = ANY (row_refs[:free]) AND queue || '' = head.queue AND concurrency_key || '' = head.key
                AND reason || '' = 'waits for its concurrency key' FOR UPDATE SKIP LOCKED
            ) AS locked
        ) = count ELSE false END AS passes
        FROM head
    ), dirtied AS (
        INSERT INTO windlass.dirty_keys (queue, key)
        SELECT queue, key FROM next WHERE NOT passes OR count < free OR highest > held + free
    ), pending AS (
        UPDATE windlass.jobs AS job
        SET status = 'pending', reason = NULL, key_slot = one.slot, updated_at = moment,
            rank = greatest(moment, beyond, (SELECT max(w.rank) FROM windlass.watermarks AS w WHERE w.queue = ANY (of_queues))),
            tenant_queue = CASE
                WHEN job.queue = ANY (ARRAY(SELECT name FROM windlass.queues WHERE name = ANY (of_queues) AND fair))
                THEN coalesce(job.tenant, '')
            END
        FROM (SELECT unnest(row_refs[:count]) AS at, unnest(numbers[:count]) AS slot FROM next WHERE passes) AS one
        WHERE job.ctid = one.at
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM pending), (SELECT coalesce(sum(count), 0) FROM next WHERE passes) INTO passed, chosen;
    IF passed < chosen THEN
        -- One of them was changed before it was locked.
        INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT * FROM unnest(of_queues, of_keys);
    END IF;
    RETURN passed;
END $$;

-- Token buckets of concurrency keys and, with the key '', of queues: see core/flow/rate.py.
CREATE TABLE windlass.token_buckets (
    queue  text NOT NULL,
    key    text NOT NULL,
    credit bigint NOT NULL,
    period bigint NOT NULL,
    at     bigint NOT NULL,
    -- When it is full again if nothing is spent: then the row may be deleted.
    full_at bigint NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.02);

-- What a runner may use of a limited queue: slots, and tokens until a moment. The slots of a queue never add up to more
-- than its limit. Deleted after the runner's lease and jobs. NULL slots: not counted yet.
CREATE TABLE windlass.quotas (
    queue  text NOT NULL,
    runner text NOT NULL,
    slots  integer,
    tokens integer NOT NULL DEFAULT 0,
    until  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, runner)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Queues: what the code declares, what an operator changed, and the settings that follow from both.
CREATE TABLE windlass.queues (
    name            text NOT NULL PRIMARY KEY,
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
    rated           boolean NOT NULL DEFAULT false
);

-- Schedules. Each tick writes its row and leaves a dead version behind.
CREATE TABLE windlass.schedules (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
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
    revision   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
CREATE INDEX schedules_due ON windlass.schedules (next_at, name) WHERE next_at IS NOT NULL AND NOT paused;

-- One lease per runner.
CREATE TABLE windlass.leases (
    runner     text NOT NULL PRIMARY KEY,
    worker     text NOT NULL,
    expires_at bigint NOT NULL,
    length     bigint NOT NULL,
    -- Graces since it was last renewed: their number is limited, or a dead runner would never be noticed.
    graces     integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- When leases were last renewed: if no runner renews, the store was out of reach.
CREATE TABLE windlass.lease_activity (
    one          integer NOT NULL PRIMARY KEY CHECK (one = 1),
    -- The last renewal of any lease, or the last grace.
    at           bigint NOT NULL,
    -- The last search for lapsed leases; written only while leases are in their grace.
    seen_at      bigint NOT NULL,
    graced_until bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Workers, refreshed by their heartbeats.
CREATE TABLE windlass.workers (
    id         text NOT NULL PRIMARY KEY,
    info       text NOT NULL,
    started_at bigint NOT NULL,
    beat_at    bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The coordinator.
CREATE TABLE windlass.leadership (
    one        integer NOT NULL PRIMARY KEY CHECK (one = 1),
    holder     text,
    term       bigint NOT NULL,
    expires_at bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Identifies these tables: a caller's transaction that enqueues jobs must be on the same database.
CREATE TABLE windlass.identity (
    one integer NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO windlass.identity DEFAULT VALUES;

-- Attempts that ended in an interval, by outcome, and how long they waited and ran: histograms as JSON, bin to count.
-- Each runner adds to it every few seconds; dropped after an hour.
CREATE TABLE windlass.meters (
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
    PRIMARY KEY (interval_start, queue, type)
) WITH (fillfactor = 70);

-- Meters summed up over a step of a minute or an hour, in microseconds: by the minute for a week, by the hour for more
-- than a year. The type '' is the rest of a queue, the queue '' the rest of all: that row exists for every step.
CREATE TABLE windlass.samples (
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
    PRIMARY KEY (step, interval_start, queue, type)
);

-- How many jobs a queue had, or all queues under '': by status as JSON, summed up over the observations of a step, and
-- the maximum of each; and how many microseconds the oldest pending job had waited at most.
CREATE TABLE windlass.queue_depths (
    step           bigint NOT NULL,
    interval_start bigint NOT NULL,
    queue          text NOT NULL,
    observations   bigint NOT NULL,
    jobs           text NOT NULL,
    max_jobs       text NOT NULL,
    oldest         bigint,
    PRIMARY KEY (step, interval_start, queue)
);

-- Clients that wait for the end of a job: the statement that ends it notifies their channels and deletes the rows.
-- Unlogged: a crash of the server also ends the connections that wait, and they write the rows again.
CREATE UNLOGGED TABLE windlass.result_waits (
    job     uuid NOT NULL,
    channel text NOT NULL,
    until   bigint NOT NULL,
    PRIMARY KEY (job, channel)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX result_waits_until ON windlass.result_waits (until);

-- Small JSON records beside the jobs, by kind: tokens, requests, actions, audit entries. Ids are compared by bytes.
CREATE TABLE windlass.documents (
    kind        text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    data        text NOT NULL,
    version     bigint NOT NULL,
    created_at  bigint NOT NULL,
    -- NULL: kept until it is deleted.
    expires_at  bigint,
    PRIMARY KEY (kind, id)
);

CREATE INDEX documents_by_end ON windlass.documents (expires_at) WHERE expires_at IS NOT NULL;

-- Which job waits for which: a row until the parent has completed, or the child is dropped. A row that outlives a dead
-- parent tells which jobs a retry of that parent brings back. Rows are only inserted and deleted.
CREATE TABLE windlass.dependencies (
    parent     uuid NOT NULL,
    child      uuid NOT NULL,
    -- The child waits for the parent's end, however that is.
    when_ended boolean NOT NULL DEFAULT false,
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

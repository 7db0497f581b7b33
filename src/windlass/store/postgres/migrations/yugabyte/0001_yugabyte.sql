-- The initial schema of the YugabyteDB profile.
-- breaking: no
--
-- The tables and columns of ../0001_initial.sql, which explains them, without partitions and storage parameters, and with
-- buckets: each job has one, by its id, and the indexes that would have a hot end begin with it. Every statement may be
-- repeated, and each is sent alone: a process that ends in between leaves nothing that the next cannot finish. Keys are HASH,
-- or ASC where their order is used. Two phrases are not SQL (migrate_stepwise.py): COLUMNS OF jobs stands for the columns of
-- that table in ../0001_initial.sql, AFTER id for those behind the id; SPLIT AT BUCKETS for a split point between each two
-- buckets. A plain PostgreSQL gets this without HASH, ASC and SPLIT.

-- Where admission begins: no job of a bucket is scheduled before `due`. Its rows say which buckets exist. Created before the
-- function that puts jobs into buckets: of two processes with different numbers of them one may end in between.
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
    id     uuid NOT NULL,
    bucket smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    COLUMNS OF jobs AFTER id,
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
    COLUMNS OF claims,
    part uuid NOT NULL DEFAULT gen_random_uuid(),
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
    id     uuid NOT NULL,
    bucket smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    COLUMNS OF history AFTER id,
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
    COLUMNS OF history_counts,
    part uuid NOT NULL DEFAULT gen_random_uuid(),
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
    id     uuid NOT NULL,
    bucket smallint NOT NULL GENERATED ALWAYS AS (windlass.bucket_of(id)) STORED,
    COLUMNS OF tombstones AFTER id,
    part   uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (id HASH, part ASC)
);
CREATE INDEX IF NOT EXISTS tombstones_until ON windlass.tombstones (bucket ASC, until ASC) SPLIT AT BUCKETS;

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
CREATE OR REPLACE VIEW windlass.highest_watermarks AS
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

-- Tables that differ from ../0001_initial.sql in their keys only.
CREATE TABLE IF NOT EXISTS windlass.idempotency_keys (COLUMNS OF idempotency_keys, PRIMARY KEY (queue ASC, hash ASC));
CREATE INDEX IF NOT EXISTS idempotency_keys_until ON windlass.idempotency_keys (until ASC) WHERE until IS NOT NULL;
CREATE TABLE IF NOT EXISTS windlass.notes (COLUMNS OF notes, PRIMARY KEY (job HASH));
CREATE TABLE IF NOT EXISTS windlass.token_buckets (COLUMNS OF token_buckets, PRIMARY KEY (queue HASH, key ASC));
CREATE TABLE IF NOT EXISTS windlass.quotas (COLUMNS OF quotas, PRIMARY KEY (queue HASH, runner ASC));
CREATE TABLE IF NOT EXISTS windlass.queues (COLUMNS OF queues, PRIMARY KEY (name ASC));
CREATE TABLE IF NOT EXISTS windlass.schedules (COLUMNS OF schedules, PRIMARY KEY (name ASC));
CREATE INDEX IF NOT EXISTS schedules_due ON windlass.schedules (next_at ASC, name ASC) WHERE next_at IS NOT NULL AND NOT paused;
CREATE TABLE IF NOT EXISTS windlass.leases (COLUMNS OF leases, PRIMARY KEY (runner ASC));
CREATE TABLE IF NOT EXISTS windlass.lease_activity (COLUMNS OF lease_activity, PRIMARY KEY (one HASH));
CREATE TABLE IF NOT EXISTS windlass.workers (COLUMNS OF workers, PRIMARY KEY (id ASC));
CREATE TABLE IF NOT EXISTS windlass.leadership (COLUMNS OF leadership, PRIMARY KEY (one HASH));
CREATE TABLE IF NOT EXISTS windlass.identity (COLUMNS OF identity, PRIMARY KEY (one HASH));
INSERT INTO windlass.identity (one) VALUES (1) ON CONFLICT (one) DO NOTHING;
CREATE TABLE IF NOT EXISTS windlass.meters (COLUMNS OF meters, PRIMARY KEY (interval_start ASC, queue ASC, type ASC));
CREATE TABLE IF NOT EXISTS windlass.samples (COLUMNS OF samples, PRIMARY KEY (step ASC, interval_start ASC, queue ASC, type ASC));
CREATE TABLE IF NOT EXISTS windlass.queue_depths (COLUMNS OF queue_depths, PRIMARY KEY (step ASC, interval_start ASC, queue ASC));
CREATE TABLE IF NOT EXISTS windlass.result_waits (COLUMNS OF result_waits, PRIMARY KEY (job HASH, channel ASC));
CREATE INDEX IF NOT EXISTS result_waits_until ON windlass.result_waits (until ASC);
CREATE TABLE IF NOT EXISTS windlass.documents (COLUMNS OF documents, PRIMARY KEY (kind ASC, id ASC));
CREATE INDEX IF NOT EXISTS documents_by_end ON windlass.documents (expires_at ASC) WHERE expires_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS windlass.dependencies (COLUMNS OF dependencies, PRIMARY KEY (parent HASH, child ASC));

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

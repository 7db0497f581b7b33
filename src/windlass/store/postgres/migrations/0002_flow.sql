-- Flow control: limits of queues, concurrency keys, fairness, ageing.
-- breaking: yes

-- What a job says of its concurrency key: NULL is the default. `lane` is whose turn it waits for in a fair queue, NULL
-- elsewhere. `lifted` is by how much ageing has raised it: its priority as it was handed in is -urgency - lifted.
ALTER TABLE windlass.jobs
    ADD COLUMN key_limit integer, ADD COLUMN key_strict boolean, ADD COLUMN key_rate text, ADD COLUMN rate_cost integer,
    ADD COLUMN lane text COLLATE "C", ADD COLUMN lifted integer NOT NULL DEFAULT 0;
ALTER TABLE windlass.history
    ADD COLUMN key_limit integer, ADD COLUMN key_strict boolean, ADD COLUMN key_rate text, ADD COLUMN rate_cost integer;

-- Who is next for a key. Strict order is that of being due, and ignores priority. By the reason alone, so that statements
-- can be written for which no other index, such as that of all that is blocked, is any use.
CREATE INDEX jobs_line ON windlass.jobs
    (queue, concurrency_key, (CASE WHEN key_strict THEN 0 ELSE urgency END), rank, id)
    WHERE reason = 'in line for its key';
-- The claim of a fair queue: the next of each tenant. With another collation, so that no plan takes another index instead.
CREATE INDEX jobs_lane ON windlass.jobs (queue COLLATE "C", urgency, lane, rank, id) WHERE lane IS NOT NULL AND status = 'pending';

-- Keys at which something has changed: a job came to the line, or a slot was freed. Only added to, in the statement that
-- does so, and taken away by whoever looks whether the next may go: nobody waits for anybody's row. `tx` is the number of
-- the transaction: who has seen all that were over at a moment need not look at lower ones again. See lines.py.
CREATE TABLE windlass.marks (
    queue text NOT NULL,
    key   text NOT NULL,
    tx    bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX marks_queue ON windlass.marks (queue, tx);

-- Buckets of tokens, of keys and, with the key '', of queues: see core/rate.py.
CREATE TABLE windlass.gates (
    queue  text NOT NULL,
    key    text NOT NULL,
    credit bigint NOT NULL,
    period bigint NOT NULL,
    at     bigint NOT NULL,
    -- From when on it is full, if nobody spends from it: then the row may go.
    full_at bigint NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.02);

-- What a runner may have of a limited queue: so many at once, and so many tokens until a moment. Written only when shares
-- move; all shares of a queue together are never more than its limit. Gone with the runner's lease, after its jobs. No
-- number of slots: nobody has counted what it runs.
CREATE TABLE windlass.shares (
    queue  text NOT NULL,
    runner text NOT NULL,
    slots  integer,
    tokens integer NOT NULL DEFAULT 0,
    until  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, runner)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

ALTER TABLE windlass.queues
    ADD COLUMN closed boolean NOT NULL DEFAULT false,
    -- What holds, worked out from what is declared and changed: NULL is no limit.
    ADD COLUMN max_concurrency integer,
    ADD COLUMN rate_limit text,
    ADD COLUMN fair boolean NOT NULL DEFAULT false,
    ADD COLUMN ageing bigint,
    -- Whether claims must ask more than what waits: any of the first three, or (`rated`) a job whose key has a rate.
    ADD COLUMN ruled boolean NOT NULL DEFAULT false,
    ADD COLUMN rated boolean NOT NULL DEFAULT false;

-- Flow control: limits of queues, concurrency keys, fairness, ageing.
-- breaking: yes

-- What a job says of its concurrency key: NULL is the default. `lane` is whose turn it waits for in a fair queue, NULL
-- elsewhere. `lifted` is by how much ageing has raised it: its priority as it was handed in is -urgency - lifted.
ALTER TABLE windlass_jobs ADD COLUMN key_limit INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN key_strict INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN key_rate TEXT;
ALTER TABLE windlass_jobs ADD COLUMN rate_cost INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN lane TEXT;
ALTER TABLE windlass_jobs ADD COLUMN lifted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_history ADD COLUMN key_limit INTEGER;
ALTER TABLE windlass_history ADD COLUMN key_strict INTEGER;
ALTER TABLE windlass_history ADD COLUMN key_rate TEXT;
ALTER TABLE windlass_history ADD COLUMN rate_cost INTEGER;

-- Who is next for a key. Strict order is that of being due, and ignores priority.
CREATE INDEX windlass_jobs_line ON windlass_jobs
    (queue, concurrency_key, (CASE WHEN key_strict THEN 0 ELSE urgency END), rank, id)
    WHERE status = 'blocked' AND reason = 'in line for its key';
-- The claim of a fair queue: the next of each tenant.
CREATE INDEX windlass_jobs_lane ON windlass_jobs (queue, urgency, lane, rank, id, type)
    WHERE lane IS NOT NULL AND status = 'pending';
-- With the queue, so that what runs in one is counted inside the index.
DROP INDEX windlass_jobs_held;
CREATE INDEX windlass_jobs_held ON windlass_jobs (worker, claim, queue) WHERE status = 'running';

-- Buckets of tokens, of keys and, with the key '', of queues: see core/rate.py.
CREATE TABLE windlass_gates (
    queue  TEXT NOT NULL,
    key    TEXT NOT NULL,
    credit INTEGER NOT NULL,
    period INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    -- From when on it is full, if nobody spends from it: then the row may go.
    full_at INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX windlass_gates_full ON windlass_gates (full_at);

ALTER TABLE windlass_queues ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
-- What holds, worked out from what is declared and changed: NULL is no limit.
ALTER TABLE windlass_queues ADD COLUMN max_concurrency INTEGER;
ALTER TABLE windlass_queues ADD COLUMN rate_limit TEXT;
ALTER TABLE windlass_queues ADD COLUMN fair INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_queues ADD COLUMN ageing INTEGER;
-- While the jobs of a queue that became fair are put into lanes: the last id that was looked at. Then NULL.
ALTER TABLE windlass_queues ADD COLUMN laning TEXT;
-- Whether claims must ask more than what waits: any of the first three, or (`rated`) a job whose key has a rate.
ALTER TABLE windlass_queues ADD COLUMN ruled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_queues ADD COLUMN rated INTEGER NOT NULL DEFAULT 0;

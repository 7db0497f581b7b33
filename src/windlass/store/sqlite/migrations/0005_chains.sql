-- Chains: jobs that wait for others, and get their results.
-- breaking: yes

-- By another name, what ageing has lifted a job by: every statement of the version before that claims or ends jobs needs it,
-- and fails. A process of that version which is still alive would run links without what they take, and let children wait
-- for ever.
ALTER TABLE windlass_jobs RENAME COLUMN lifted TO aged_by;

-- Which parameters get whose results: [[parameter, parent], …]; the results that have come: [[parent, result], …]; how
-- many parents have not completed; and how long after the last of them it is due. NULL or 0 where there are no parents.
ALTER TABLE windlass_jobs ADD COLUMN takes TEXT;
ALTER TABLE windlass_jobs ADD COLUMN inputs TEXT;
ALTER TABLE windlass_jobs ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_jobs ADD COLUMN lag INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_history ADD COLUMN takes TEXT;
ALTER TABLE windlass_history ADD COLUMN inputs TEXT;
ALTER TABLE windlass_history ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_history ADD COLUMN lag INTEGER NOT NULL DEFAULT 0;

-- Who waits for whom: a row until the parent has completed, or the child is dropped. One that outlives a dead parent
-- tells whom a retry of that brings back.
CREATE TABLE windlass_edges (
    parent TEXT NOT NULL,
    child  TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;

-- Chains: jobs that wait for others, and get their results.
-- breaking: yes

-- Which parameters get whose results: [[parameter, parent], …]; the results that have come: [[parent, result], …]; how
-- many parents have not completed; and how long after the last of them it is due. NULL or 0 where there are no parents.
ALTER TABLE windlass.jobs ADD COLUMN takes text, ADD COLUMN inputs text, ADD COLUMN waits integer NOT NULL DEFAULT 0,
    ADD COLUMN lag bigint NOT NULL DEFAULT 0;
ALTER TABLE windlass.history ADD COLUMN takes text, ADD COLUMN inputs text, ADD COLUMN waits integer NOT NULL DEFAULT 0,
    ADD COLUMN lag bigint NOT NULL DEFAULT 0;

-- Chains: jobs that wait for others, and get their results.
-- breaking: yes

-- By another name, what ageing has lifted a job by: every statement of the version before that claims or ends jobs needs it,
-- and fails. A process of that version which is still alive would run links without what they take, and let children wait
-- for ever.
ALTER TABLE windlass.jobs RENAME COLUMN lifted TO aged_by;

-- Which parameters get whose results: [[parameter, parent], …]; the results that have come: [[parent, result], …]; how
-- many parents have not completed; and how long after the last of them it is due. NULL or 0 where there are no parents.
ALTER TABLE windlass.jobs ADD COLUMN takes text, ADD COLUMN inputs text, ADD COLUMN waits integer NOT NULL DEFAULT 0,
    ADD COLUMN lag bigint NOT NULL DEFAULT 0;
ALTER TABLE windlass.history ADD COLUMN takes text, ADD COLUMN inputs text, ADD COLUMN waits integer NOT NULL DEFAULT 0,
    ADD COLUMN lag bigint NOT NULL DEFAULT 0;

-- Whether anybody waits for this job, or once did: only for those is the end more than the end of one job. Who hands a
-- child in sets it under the lock of the row. So whoever ends the job and had to wait for that lock sees it, although
-- the statement's own snapshot is older: see docs/decisions/0034-heirs.md.
ALTER TABLE windlass.jobs ADD COLUMN heirs boolean NOT NULL DEFAULT false;

-- Who waits for whom: a row until the parent has completed, or the child is dropped. One that outlives a dead parent
-- tells whom a retry of that brings back. Only added to and deleted from, never changed.
CREATE TABLE windlass.edges (
    parent uuid NOT NULL,
    child  uuid NOT NULL,
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- What a child has been given, with the results of these parents that it takes: [[parent, result], …].
CREATE FUNCTION windlass.given(inputs text, takes text, parents uuid[], results text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    added text;
BEGIN
    -- Mostly there is one. A query would cost more than all the rest of it.
    FOR n IN 1..cardinality(parents) LOOP
        IF position(parents[n]::text IN takes) > 0 THEN
            added := concat_ws(',', added, json_build_array(parents[n], results[n])::text);
        END IF;
    END LOOP;
    RETURN CASE
        WHEN added IS NULL THEN inputs
        WHEN inputs IS NULL THEN '[' || added || ']'
        ELSE left(inputs, -1) || ',' || added || ']'
    END;
END $$;

-- Parents have completed, with these results: who waits for nobody else is due, at the earliest after its own delay
-- (see core/chain.py, due_after); with a key it goes to the line. None has a rank below `beyond`. How many may run now, or are in line. The caller has
-- locked the parents, be it by deleting them in the statement that calls this.
--
-- A function, because it is a part of that statement, and yet each of its own statements sees all that is committed
-- when it begins. An heir may just be called off, or called back, by somebody else: then it is met where it is after
-- that, and who was called off finds what it needs when it is retried.
CREATE FUNCTION windlass.pass_on(ended uuid[], outcomes text[], moment bigint, beyond bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    children uuid[];
    givers   uuid[];
    gifts    text[];
    met      uuid[];
    ready    integer;
    total    integer := 0;
BEGIN
    WITH passed AS (
        DELETE FROM windlass.edges WHERE parent = ANY (ended) RETURNING parent, child
    )
    SELECT array_agg(passed.child), array_agg(passed.parent), array_agg(one.result) INTO children, givers, gifts
    FROM passed JOIN unnest(ended, outcomes) AS one (id, result) ON one.id = passed.parent;

    FOR look IN 1..3 LOOP
        EXIT WHEN coalesce(cardinality(children), 0) = 0;
        -- Those that wait for others too are in order: somebody may be passing on to the same ones.
        PERFORM FROM windlass.jobs WHERE id = ANY (children) AND waits > 1 ORDER BY id FOR UPDATE;
        WITH gift AS MATERIALIZED (
            SELECT child, count(*)::integer AS parents, array_agg(giver) AS givers, array_agg(result) AS results
            FROM unnest(children, givers, gifts) AS one (child, giver, result) GROUP BY child
        ), heir AS (
            UPDATE windlass.jobs AS job
            SET waits = job.waits - gift.parents,
                inputs = CASE
                    WHEN job.takes IS NULL THEN job.inputs
                    ELSE windlass.given(job.inputs, job.takes, gift.givers, gift.results)
                END,
                status = CASE
                    WHEN job.waits > gift.parents THEN job.status
                    WHEN greatest(CASE WHEN job.run_at > job.created_at THEN job.run_at END, moment + job.lag) > moment THEN 'scheduled'
                    WHEN job.concurrency_key IS NOT NULL THEN 'blocked'
                    ELSE 'pending'
                END,
                reason = CASE
                    WHEN job.waits > gift.parents THEN job.reason
                    WHEN job.concurrency_key IS NOT NULL AND greatest(CASE WHEN job.run_at > job.created_at THEN job.run_at END, moment + job.lag) <= moment
                        THEN 'in line for its key'
                END,
                run_at = CASE
                    WHEN job.waits > gift.parents THEN job.run_at ELSE greatest(CASE WHEN job.run_at > job.created_at THEN job.run_at END, moment + job.lag)
                END,
                -- Never in the past, nor below the floor of its place (see core/admission.py), nor where whoever has
                -- claimed its parents has looked already, should the clock have been set back since.
                rank = CASE
                    WHEN job.waits > gift.parents THEN job.rank
                    WHEN job.concurrency_key IS NOT NULL THEN greatest(CASE WHEN job.run_at > job.created_at THEN job.run_at END, moment + job.lag)
                    ELSE greatest(CASE WHEN job.run_at > job.created_at THEN job.run_at END, moment + job.lag, beyond, (
                        SELECT f.rank FROM windlass.floors AS f WHERE f.queue = job.queue AND f.urgency = job.urgency
                    ))
                END,
                lane = (
                    SELECT CASE WHEN queue.fair THEN coalesce(job.tenant, '') END FROM windlass.queues AS queue
                    WHERE queue.name = job.queue
                ),
                updated_at = moment
            FROM gift WHERE job.id = gift.child
            RETURNING job.id, job.queue, job.concurrency_key, job.status, job.reason
        ), marked AS (
            INSERT INTO windlass.marks (queue, key)
            SELECT DISTINCT queue, concurrency_key FROM heir WHERE reason = 'in line for its key'
        )
        SELECT array_agg(id), count(*) FILTER (WHERE status = 'pending' OR reason = 'in line for its key')
        INTO met, ready FROM heir;
        total := total + ready;
        EXIT WHEN cardinality(met) = cardinality(children);

        WITH gift AS MATERIALIZED (
            SELECT child, count(*)::integer AS parents, array_agg(giver) AS givers, array_agg(result) AS results
            FROM unnest(children, givers, gifts) AS one (child, giver, result)
            WHERE child <> ALL (coalesce(met, '{}')) GROUP BY child
        ), heir AS (
            UPDATE windlass.history AS job
            SET waits = job.waits - gift.parents,
                inputs = CASE
                    WHEN job.takes IS NULL THEN job.inputs
                    ELSE windlass.given(job.inputs, job.takes, gift.givers, gift.results)
                END
            FROM gift WHERE job.id = gift.child AND job.waits > 0
            RETURNING job.id
        )
        SELECT coalesce(met, '{}') || coalesce(array_agg(id), '{}') INTO met FROM heir;
        SELECT array_agg(child), array_agg(giver), array_agg(result) INTO children, givers, gifts
        FROM unnest(children, givers, gifts) AS one (child, giver, result) WHERE child <> ALL (met);
    END LOOP;
    RETURN total;
END $$;

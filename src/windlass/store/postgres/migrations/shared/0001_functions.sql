-- Functions of the first step of every profile, after its tables.

-- Shorten rows of claims to the jobs that run, and delete rows without one. It reads the jobs, because the numbers that
-- it is given are a guess. Returns how many rows were deleted.
CREATE OR REPLACE FUNCTION windlass.shorten_claims(holder text, numbers bigint[]) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone integer := 0;
BEGIN
    IF cardinality(numbers) > 0 THEN
        DELETE FROM windlass.claims AS held
        WHERE held.runner = holder AND held.claim = ANY (numbers) AND NOT EXISTS (
            SELECT FROM windlass.jobs AS job
            WHERE job.id = ANY (held.jobs) AND job.claim = held.claim AND job.worker = holder AND job.status || '' = 'running'
            OFFSET 0
        );
        GET DIAGNOSTICS gone = ROW_COUNT;
        IF gone < cardinality(numbers) THEN
            UPDATE windlass.claims AS held SET jobs = ARRAY(
                SELECT job.id FROM windlass.jobs AS job
                WHERE job.id = ANY (held.jobs) AND job.claim = held.claim AND job.worker = holder AND job.status || '' = 'running'
            )
            WHERE held.runner = holder AND held.claim = ANY (numbers);
        END IF;
    END IF;
    RETURN gone;
END $$;

-- The parent results of a job, [[parent, result], …], with those of these parents that it takes added.
CREATE OR REPLACE FUNCTION windlass.add_parent_results(parent_results text, result_params text, parents uuid[], results text[])
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    added text;
BEGIN
    -- Mostly there is one: a query would cost more than all the rest.
    FOR n IN 1..cardinality(parents) LOOP
        IF position(parents[n]::text IN result_params) > 0 THEN
            added := concat_ws(',', added, json_build_array(parents[n], results[n])::text);
        END IF;
    END LOOP;
    RETURN CASE
        WHEN added IS NULL THEN parent_results
        WHEN parent_results IS NULL THEN '[' || added || ']'
        ELSE left(parent_results, -1) || ',' || added || ']'
    END;
END $$;

-- When a job is due whose last parent completed at a moment: see core/jobs/dependencies.py, due_after.
CREATE OR REPLACE FUNCTION windlass.due_after(run_at bigint, created_at bigint, moment bigint, delay bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(CASE WHEN run_at > created_at THEN run_at END, moment + delay)
$$;

-- Release the dependents of ended parents, with their results; with `only_ended`, for parents that did not complete, only
-- those that wait for the end alone. A dependent without other pending parents is due after its own delay; with a
-- concurrency key it waits for its key. No rank is below `beyond`. Returns how many are pending or wait for their key.
-- The caller has locked the parents, or deletes them in the statement that calls this.
--
-- A function, because it is part of that statement, and yet each of its own statements sees what is committed when it
-- begins. A dependent may be cancelled or revived concurrently: then it is updated where it is afterwards, and a
-- cancelled one finds its results when it is retried.
CREATE OR REPLACE FUNCTION windlass.release_dependents(
    ended uuid[], outcomes text[], moment bigint, beyond bigint, only_ended boolean DEFAULT false
) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    children uuid[];
    parents  uuid[];
    results  text[];
    updated  uuid[];
    ready    integer;
    total    integer := 0;
BEGIN
    WITH deleted AS (
        DELETE FROM windlass.dependencies WHERE parent = ANY (ended) AND (when_ended OR NOT only_ended)
        RETURNING parent, child
    )
    SELECT array_agg(deleted.child), array_agg(deleted.parent), array_agg(one.result) INTO children, parents, results
    FROM deleted JOIN unnest(ended, outcomes) AS one (id, result) ON one.id = deleted.parent;

    FOR attempt IN 1..3 LOOP
        EXIT WHEN coalesce(cardinality(children), 0) = 0;
        -- Those with other pending parents are locked in order: another call may release the same ones.
        PERFORM FROM windlass.jobs WHERE id = ANY (children) AND pending_parents > 1 ORDER BY id FOR UPDATE;
        WITH completed AS MATERIALIZED (
            SELECT child, count(*)::integer AS count, array_agg(parent) AS parents, array_agg(result) AS results
            FROM unnest(children, parents, results) AS one (child, parent, result) GROUP BY child
        ), dependent AS (
            UPDATE windlass.jobs AS job
            SET pending_parents = job.pending_parents - completed.count,
                parent_results = CASE
                    WHEN job.result_params IS NULL THEN job.parent_results
                    ELSE windlass.add_parent_results(
                        job.parent_results, job.result_params, completed.parents, completed.results
                    )
                END,
                status = CASE
                    WHEN job.pending_parents > completed.count THEN job.status
                    WHEN windlass.due_after(job.run_at, job.created_at, moment, job.delay_after_parents) > moment
                        THEN 'scheduled'
                    WHEN job.concurrency_key IS NOT NULL THEN 'blocked'
                    ELSE 'pending'
                END,
                reason = CASE
                    WHEN job.pending_parents > completed.count THEN job.reason
                    WHEN job.concurrency_key IS NOT NULL
                        AND windlass.due_after(job.run_at, job.created_at, moment, job.delay_after_parents) <= moment
                        THEN 'waits for its concurrency key'
                END,
                run_at = CASE
                    WHEN job.pending_parents > completed.count THEN job.run_at
                    ELSE windlass.due_after(job.run_at, job.created_at, moment, job.delay_after_parents)
                END,
                -- Never in the past, below the watermark (see core/jobs/admission.py), or behind the cursor of the claim that
                -- took the parents, should the clock have been set back since.
                rank = CASE
                    WHEN job.pending_parents > completed.count THEN job.rank
                    WHEN job.concurrency_key IS NOT NULL
                        THEN windlass.due_after(job.run_at, job.created_at, moment, job.delay_after_parents)
                    ELSE greatest(
                        windlass.due_after(job.run_at, job.created_at, moment, job.delay_after_parents), beyond, (
                            SELECT max(w.rank) FROM windlass.watermarks AS w
                            WHERE w.queue = job.queue AND w.sort_priority = job.sort_priority
                        )
                    )
                END,
                tenant_queue = (
                    SELECT CASE WHEN queue.fair THEN coalesce(job.tenant, '') END FROM windlass.queues AS queue
                    WHERE queue.name = job.queue
                ),
                updated_at = moment
            FROM completed WHERE job.id = completed.child
            RETURNING job.id, job.queue, job.concurrency_key, job.status, job.reason
        ), dirtied AS (
            INSERT INTO windlass.dirty_keys (queue, key)
            SELECT DISTINCT queue, concurrency_key FROM dependent WHERE reason = 'waits for its concurrency key'
        )
        SELECT array_agg(id), count(*) FILTER (WHERE status = 'pending' OR reason = 'waits for its concurrency key')
        INTO updated, ready FROM dependent;
        total := total + ready;
        EXIT WHEN cardinality(updated) = cardinality(children);

        WITH completed AS MATERIALIZED (
            SELECT child, count(*)::integer AS count, array_agg(parent) AS parents, array_agg(result) AS results
            FROM unnest(children, parents, results) AS one (child, parent, result)
            WHERE child <> ALL (coalesce(updated, '{}')) GROUP BY child
        ), dependent AS (
            UPDATE windlass.history AS job
            SET pending_parents = job.pending_parents - completed.count,
                parent_results = CASE
                    WHEN job.result_params IS NULL THEN job.parent_results
                    ELSE windlass.add_parent_results(
                        job.parent_results, job.result_params, completed.parents, completed.results
                    )
                END
            FROM completed WHERE job.id = completed.child AND job.pending_parents > 0
            RETURNING job.id
        )
        SELECT coalesce(updated, '{}') || coalesce(array_agg(id), '{}') INTO updated FROM dependent;
        SELECT array_agg(child), array_agg(parent), array_agg(result) INTO children, parents, results
        FROM unnest(children, parents, results) AS one (child, parent, result) WHERE child <> ALL (updated);
    END LOOP;
    RETURN total;
END $$;

-- Drop finished jobs with their notes and dependencies. Their ids stay as tombstones until a day after they ended.
-- The last outcome is cut out of the attempts as text, because PostgreSQL cannot parse all JSON strings; quotes
-- within a string are escaped.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) AND drop_at < :before::bigint
    RETURNING id, partition, queue, status, attempt, attempts, finished_at, drop_at, pending_parents, parents
), tombstone AS (
    INSERT INTO windlass.tombstones (id, partition, attempt, outcome, until)
    SELECT id, (finished_at + :tombstone::bigint) / 86400000000 % 3, attempt,
        CASE status WHEN 'completed' THEN status ELSE substring(attempts FROM '.*"outcome":"([^"\\]*)"') END,
        finished_at + :tombstone::bigint
    FROM gone WHERE finished_at + :tombstone::bigint > :now
), noted AS (
    DELETE FROM windlass.notes WHERE job = ANY (ARRAY(SELECT id FROM gone))
), unlinked AS (
    -- Who is dropped waits for nobody.
    DELETE FROM windlass.dependencies WHERE ctid = ANY (ARRAY(
        SELECT dependency.at FROM gone CROSS JOIN LATERAL json_array_elements_text(gone.parents::json) AS named (parent)
        CROSS JOIN LATERAL (
            SELECT ctid AS at FROM windlass.dependencies WHERE parent = named.parent::uuid AND child = gone.id OFFSET 0
        ) AS dependency WHERE gone.pending_parents > 0
    ))
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN partition < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
SELECT id::text FROM gone

-- Remove finished jobs and all that is kept of them. Their ids are remembered until a day after they ended. Plain
-- completions are not in the list of attempts. The last outcome is cut out of that list as text: to read it as JSON
-- fails if there are characters in an error that PostgreSQL has not. Within a string the quotes would be escaped.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) AND drop_at < :before::bigint
    RETURNING id, shelf, queue, status, attempt, attempts, finished_at, drop_at, waits, parents
), buried AS (
    INSERT INTO windlass.tombstones (id, shelf, attempt, outcome, until)
    SELECT id, (finished_at + :tombstone::bigint) / 86400000000 % 3, attempt,
        CASE status WHEN 'completed' THEN status ELSE substring(attempts FROM '.*"outcome":"([^"\\]*)"') END,
        finished_at + :tombstone::bigint
    FROM gone WHERE finished_at + :tombstone::bigint > :now
), noted AS (
    DELETE FROM windlass.notes WHERE job = ANY (ARRAY(SELECT id FROM gone))
), unlinked AS (
    -- Who is dropped waits for nobody.
    DELETE FROM windlass.edges WHERE ctid = ANY (ARRAY(
        SELECT edge.at FROM gone CROSS JOIN LATERAL json_array_elements_text(gone.parents::json) AS named (parent)
        CROSS JOIN LATERAL (
            SELECT ctid AS at FROM windlass.edges WHERE parent = named.parent::uuid AND child = gone.id OFFSET 0
        ) AS edge WHERE gone.waits > 0
    ))
), counted AS (
    INSERT INTO windlass.tallies (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN shelf < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
SELECT id::text FROM gone

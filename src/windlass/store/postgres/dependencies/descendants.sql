-- Live dependents of these jobs, direct or not, each with one of its parents. The dependencies lead, step by step.
WITH RECURSIVE down (child, because) AS (
    SELECT dependency.child, dependency.parent FROM windlass.dependencies AS dependency CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs WHERE id = dependency.child OFFSET 0
    ) AS dependent
    WHERE dependency.parent = ANY (:ids::uuid[])
    UNION
    SELECT dependency.child, dependency.parent FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.dependencies WHERE parent = down.child OFFSET 0
    ) AS dependency CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs WHERE id = dependency.child OFFSET 0
    ) AS dependent
)
SELECT DISTINCT ON (child) child::text, because::text FROM down ORDER BY child, because

-- Dependencies of new jobs.
INSERT INTO windlass.dependencies (parent, child)
SELECT dependency.parent, dependency.child FROM unnest(
    string_to_array(:parents, ',')::uuid[], string_to_array(:children, ',')::uuid[]
) AS dependency (parent, child)

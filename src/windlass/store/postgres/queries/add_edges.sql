-- Who waits for whom.
INSERT INTO windlass.edges (parent, child)
SELECT edge.parent, edge.child FROM unnest(
    string_to_array(:parents, ',')::uuid[], string_to_array(:children, ',')::uuid[]
) AS edge (parent, child)

-- Who waits for these, with the result of the parent if it takes that, and where it stands in line when it is due: one step in
-- an index for each that nobody waits for. An heir that has ended meanwhile has no queue.
SELECT edge.parent, edge.child, heir.queue, heir.concurrency_key,
    CASE WHEN instr(coalesce(heir.takes, gone.takes), edge.parent) > 0 THEN
        json_array(edge.parent, (SELECT result FROM windlass_history AS done WHERE done.id = edge.parent))
    END
FROM json_each(:parents) AS parent CROSS JOIN windlass_edges AS edge ON edge.parent = parent.value
LEFT JOIN windlass_jobs AS heir ON heir.id = edge.child
LEFT JOIN windlass_history AS gone ON heir.id IS NULL AND gone.id = edge.child

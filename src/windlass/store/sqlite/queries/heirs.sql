-- Who waits for these, and where it stands in line when it is due: one step in an index for each that nobody waits for.
-- An heir that has ended meanwhile has no queue.
SELECT edge.parent, edge.child, heir.queue, heir.concurrency_key
FROM json_each(:parents) AS parent CROSS JOIN windlass_edges AS edge ON edge.parent = parent.value
LEFT JOIN windlass_jobs AS heir ON heir.id = edge.child

-- Who is dropped waits for nobody.
DELETE FROM windlass_edges WHERE (parent, child) IN (
    SELECT parent.value, gone.id FROM windlass_history AS gone, json_each(gone.parents) AS parent
    WHERE gone.id IN (SELECT value FROM json_each(:ids)) AND gone.waits > 0
)

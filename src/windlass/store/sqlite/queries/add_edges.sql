-- Who waits for whom: [[parent, child], …].
INSERT INTO windlass_edges (parent, child) SELECT value ->> 0, value ->> 1 FROM json_each(:edges)

-- Nobody waits for these any more.
DELETE FROM windlass_edges WHERE parent IN (SELECT value FROM json_each(:parents))

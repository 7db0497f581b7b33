-- name: share_lock_queues
-- Take row locks that conflict with no enqueue, claim or change of settings. They are written to the WAL, so that the commit
-- waits for a standby.
SELECT 1 FROM windlass.queues WHERE name = ANY(:names::text[]) ORDER BY name COLLATE "C" FOR KEY SHARE

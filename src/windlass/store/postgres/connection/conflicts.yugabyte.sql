-- name: add_conflicts
-- Add to the counts of this process in this minute.
INSERT INTO windlass.conflicts AS counted (interval_start, process, conflicts, lock_waits)
VALUES (:now / :minute::bigint * :minute::bigint, :process::uuid, :conflicts::bigint, :lock_waits::bigint)
ON CONFLICT (interval_start, process) DO UPDATE SET
    conflicts = counted.conflicts + excluded.conflicts, lock_waits = counted.lock_waits + excluded.lock_waits

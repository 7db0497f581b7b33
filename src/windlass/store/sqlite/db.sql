-- name: add_history_count
-- Add to the number of finished jobs, so that counting them never scans the history.
INSERT INTO windlass_history_counts (queue, status, jobs) VALUES (:queue, :status, :change)
ON CONFLICT (queue, status) DO UPDATE SET jobs = jobs + excluded.jobs

-- Remember ids that are dropped within a day of their end. Plain completions are not in the list of attempts.
INSERT INTO windlass_tombstones (id, attempt, outcome, until)
SELECT id, attempt, CASE status WHEN 'completed' THEN status ELSE attempts ->> '$[#-1].outcome' END,
    finished_at + :tombstone
FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at + :tombstone > :now
ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, outcome = excluded.outcome, until = excluded.until

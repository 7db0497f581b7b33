-- Which of these may be dropped now.
SELECT id FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids)) AND drop_at <= :now

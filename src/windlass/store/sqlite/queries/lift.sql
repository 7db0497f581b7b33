-- They move up to a higher priority, at the rank they have; the priority that people see stays.
UPDATE windlass_jobs SET aged_by = aged_by + urgency - :urgency, urgency = :urgency, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))

-- Cancelled jobs that another parent holds back now: [[id, reason], …].
UPDATE windlass_history SET reason = each.value ->> 1
FROM json_each(:reasons) AS each WHERE windlass_history.id = each.value ->> 0

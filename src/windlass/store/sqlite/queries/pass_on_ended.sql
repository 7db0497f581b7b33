-- The same for heirs that were called off meanwhile: a retry finds what it needs.
UPDATE windlass_history
SET inputs = CASE
        WHEN gift.value ->> 2 IS NULL THEN inputs
        WHEN inputs IS NULL THEN '[' || (gift.value ->> 2) || ']'
        ELSE substr(inputs, 1, length(inputs) - 1) || ',' || (gift.value ->> 2) || ']'
    END,
    waits = waits - (gift.value ->> 1)
FROM json_each(:gifts) AS gift WHERE windlass_history.id = gift.value ->> 0 AND windlass_history.waits > 0

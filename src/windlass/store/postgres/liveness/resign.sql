-- Give up leadership; the term stays, so that the next one is larger.
UPDATE windlass.leadership SET holder = NULL WHERE holder = :holder

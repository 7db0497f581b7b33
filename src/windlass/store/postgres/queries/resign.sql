-- Leave the office; the term stays, so that the next one is larger.
UPDATE windlass.office SET holder = NULL WHERE holder = :holder

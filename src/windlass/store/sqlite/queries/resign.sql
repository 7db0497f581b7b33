-- Leave the office; the term stays, so that the next one is larger.
UPDATE windlass_office SET holder = NULL WHERE holder = :holder

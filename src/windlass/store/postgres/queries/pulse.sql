-- When anybody last kept a lease alive, and what time it is: a look without a lock.
SELECT (SELECT at FROM windlass.pulse WHERE one = 1), :now

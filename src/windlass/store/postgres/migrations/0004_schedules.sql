-- Schedules: what is to be handed in again and again, and which job belongs to which of their ticks.
-- breaking: yes

-- Which schedule handed a job in, and for which moment; NULL is of none: somebody handed it in, or ran it at once.
ALTER TABLE windlass.jobs ADD COLUMN schedule text, ADD COLUMN tick bigint;
ALTER TABLE windlass.history ADD COLUMN schedule text, ADD COLUMN tick bigint;

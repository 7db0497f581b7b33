"""The Redis store: every verb is a script that takes n items and gives n answers; every queue has its own hash slot.

Words used here besides those of docs/glossary.md:

letter      the status of a job as one byte, which also tells kinds of scheduled and blocked apart (records/record.py)
member      an entry of a sorted set in which all scores are 0, so that it sorts by its bytes (records/keys.py)
order       the part of a member that gives the order of jobs: sort_priority, rank and id
head        a prefix that some members share; also each of the fixed parts A, B and C of a record
digest      the hash of an idempotency key or concurrency key
plain       without what the quick script of a verb cannot do, such as limits, keys or parents
kind        the new jobs of a batch that differ in few fields (verbs/batch.py)
portion     as much of a list as one call of a script handles (connection/portion.py)
mail        the state of a parent, for a child in another queue (dependencies/mail.py)
plan        the ticks of a schedule that are to be fired, stored before any queue is called (schedules/fire.py)
stamp       a number that grows with every write of a schedule, and numbers plans (parts/global/schedule_state.lua)
"""

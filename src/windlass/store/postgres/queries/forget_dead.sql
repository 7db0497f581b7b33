-- Workers that have not been heard of for so long. One that beats at this very moment is looked at again, and stays.
DELETE FROM windlass.workers WHERE beat_at <= :now - :silent::bigint

-- How many dead letters there are, by their tally.
SELECT coalesce(sum(jobs), 0) FROM windlass_tallies WHERE status = 'dead'

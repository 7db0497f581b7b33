-- Whether anybody cleans up at all.
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean

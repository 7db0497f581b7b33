-- Whether autovacuum runs.
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean

-- For this transaction: others queue behind one that waits for a lock.
SELECT set_config('lock_timeout', :wait::text, true)

-- In this transaction: who waits for a lock makes others wait behind him, so not for long.
SELECT set_config('lock_timeout', '100ms', true)

-- open_lease: create a lease for a new runner. Safe to repeat; an ended runner gets none. Request: runner, worker,
-- length.
--! scope: global
--! effect: writes
--! uses: lease_activity, runners
local now = now_micros()
local runner, worker, length = unpack(request, 1, 3)
-- The length counts in the check for silence. If that finds one, it forgets the length, which is noted again below.
note_length(length, now)
check_silence(now)
if redis.call('HEXISTS', K.leases, runner) == 1 or redis.call('ZSCORE', K.ended_runners, runner) then return 0 end
note_length(length, now)
write_lease(runner, {expires = now + length, length = length, graces = 0, worker = worker})
redis.call('ZADD', K.registrations, 0, registration_of(worker, runner, ''))
return 1

-- open_lease: a lease for a new runner. Asking again is the same as asking once, and who is gone does not come back.
-- of the office
-- The request is runner, worker, length.
-- uses: office, pulse, berth
-- keys: gone
local problem = strange()
if problem then return problem end
local now = the_time()
local runner, worker, length = unpack(request, 1, 3)
feel_pulse(now)
if redis.call('HEXISTS', K.leases, runner) == 1 or redis.call('ZSCORE', K.gone, runner) then return 0 end
note_length(length, now)
write_lease(runner, {expires = now + length, length = length, graced = 0, worker = worker})
redis.call('ZADD', K.berths, 0, berth_of(worker, runner, ''))
return 1

-- allow_runner: let a runner claim in this queue while its lease holds, unless it has ended here. Request: runner,
-- length. Reply: 1, or 0 if it has ended.
--! effect: writes
local runner, length = unpack(request, 1, 2)
if redis.call('ZSCORE', K.ended_runners, runner) then return 0 end
redis.call('HSET', K.leases, runner, string.format('%.0f', now_micros() + length))
return 1

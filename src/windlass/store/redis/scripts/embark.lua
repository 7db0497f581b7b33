-- embark: let a runner claim in this queue for as long as its lease holds, unless it is gone here.
-- The request is runner, how long. The answer is 1, or 0 if it is gone.
-- uses: call
-- keys: queue leases gone
local problem = strange()
if problem then return problem end
local runner, length = unpack(request, 1, 2)
if redis.call('ZSCORE', K.gone, runner) then return 0 end
redis.call('HSET', K.leases, runner, string.format('%.0f', the_time() + length))
return 1

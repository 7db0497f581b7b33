-- berth: a runner wants to claim in queues that do not know it, or not any more. They are noted down first: whoever
-- ends this runner must look there.
-- of the office
-- The request is runner, queues. The answer is how long its lease holds, 0 if it does not.
-- uses: office, pulse, berth
local problem = strange()
if problem then return problem end
local runner, queues = unpack(request, 1, 2)
local now = the_time()
local lease = read_lease(runner, now)
if not lease or lease.expires <= now then return 0 end
for _, queue in ipairs(queues) do redis.call('ZADD', K.berths, 0, berth_of(lease.worker, runner, queue)) end
return lease.expires - now

-- aboard: the runners that this queue knows.
-- uses: call
-- keys: queue leases
local problem = strange()
if problem then return problem end
return redis.call('HKEYS', K.leases)

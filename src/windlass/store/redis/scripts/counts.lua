-- counts: how many jobs of this queue have which status letter, as letter and number one after the other.
-- uses: call
-- keys: queue counts
local problem = strange()
if problem then return problem end
return redis.call('HGETALL', K.counts)

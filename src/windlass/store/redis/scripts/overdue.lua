-- overdue: finished jobs of this queue that should have been dropped so long ago. The request is how long. The answer is
-- how many, and for how long at the longest.
-- uses: call
-- keys: queue ended
local problem = strange()
if problem then return problem end
local now = the_time()
local jobs = redis.call('ZCOUNT', K.ended, '-inf', string.format('(%.0f', now - request[1]))
local first = redis.call('ZRANGE', K.ended, 0, 0, 'WITHSCORES')
return {jobs, jobs > 0 and now - tonumber(first[2]) or 0}

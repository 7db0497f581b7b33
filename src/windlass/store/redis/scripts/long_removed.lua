-- long_removed: schedules that were removed before a moment, those first that were removed first.
-- of the office
-- The request is the length of time since, and how many at most. The answer is name, number of each; all of its plans had a
-- lower one.
-- uses: office
-- keys: removed
local problem = strange()
if problem then return problem end
local length, most = unpack(request, 1, 2)
return redis.call('ZRANGEBYSCORE', K.removed, '-inf', the_time() - length, 'WITHSCORES', 'LIMIT', 0, most)

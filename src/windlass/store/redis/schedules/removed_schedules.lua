-- removed_schedules: schedules that were removed long ago, the earliest first. Request: minimum age, the maximum.
-- Reply: for each its name, and a number that is higher than those of all of its plans.
--! scope: global
--! effect: reads
local length, max_count = unpack(request, 1, 2)
return redis.call('ZRANGEBYSCORE', K.removed_schedules, '-inf', now_micros() - length, 'WITHSCORES', 'LIMIT', 0, max_count)

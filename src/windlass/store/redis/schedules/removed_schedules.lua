-- removed_schedules: schedules that were removed before a moment, the earliest first. Request: minimum age, the
-- maximum. Reply: name, number of each; all of its plans had a lower one.
--! scope: global
--! effect: reads
local length, max_count = unpack(request, 1, 2)
return redis.call('ZRANGEBYSCORE', K.removed_schedules, '-inf', now_micros() - length, 'WITHSCORES', 'LIMIT', 0, max_count)

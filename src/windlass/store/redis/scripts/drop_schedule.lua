-- drop_schedule: a schedule is removed, if nobody has written it since it was read, and nobody is at its ticks.
-- of the office
-- The request is name, stamp. The answer is 1, or 0 if it is not so any more. Queues still know of its last plan: that is
-- noted, and so is how far its ticks went, because one of the same name makes jobs with the same ids.
-- uses: standing
-- keys: schedules removed
local problem = strange()
if problem then return problem end
local name, stamp = unpack(request, 1, 2)
local standing = redis.call('HGET', K.standings, name)
standing = standing and read_standing(standing)
if not standing or standing.stamp ~= stamp or redis.call('HEXISTS', K.plans, name) == 1 then return 0 end
redis.call('HDEL', K.schedules, name)
redis.call('HDEL', K.standings, name)
redis.call('ZREM', K.ticking, name)
redis.call('ZADD', K.removed, new_stamps(1, the_time()), name)
if standing.last > (tonumber(redis.call('HGET', K.meta, 'furthest')) or 0) then
  redis.call('HSET', K.meta, 'furthest', standing.last)
end
return 1

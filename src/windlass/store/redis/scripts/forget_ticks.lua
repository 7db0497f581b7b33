-- forget_ticks: plans of schedules that were removed long ago are forgotten; not those of others of the same names. The
-- request is {name, number up to which its plans go} of each.
-- makes no queue
-- uses: call
-- keys: queue ticks
local problem = strange()
if problem then return problem end
local names, old = {}, {}
for i, each in ipairs(request) do names[i] = each[1] end
for i, kept in ipairs(redis.call('HMGET', K.ticks, unpack(names))) do
  if kept and struct.unpack('>I8', kept) <= request[i][2] then old[#old + 1] = names[i] end
end
if #old > 0 then redis.call('HDEL', K.ticks, unpack(old)) end
return #old

-- forget_ticks: forget the plans of schedules that were removed long ago, but not of newer ones of the same name.
-- Request: {name, highest number of its plans} of each.
--! effect: writes
--! missing_queue: skip
local names, old = {}, {}
for i, each in ipairs(request) do names[i] = each[1] end
for i, kept in ipairs(redis.call('HMGET', K.fired_ticks, unpack(names))) do
  if kept and struct.unpack('>I8', kept) <= request[i][2] then old[#old + 1] = names[i] end
end
if #old > 0 then redis.call('HDEL', K.fired_ticks, unpack(old)) end
return #old

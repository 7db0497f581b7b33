-- audit_schedules: schedules, some at a time, that are not where their next tick says.
-- of the office
-- The request is {where to go on, 0 at first}. The answer is where to go on (0: that was all), how many were looked at, and
-- the names of those that are in the wrong place.
-- uses: standing
local problem = strange()
if problem then return problem end
local cursor, found = unpack(redis.call('HSCAN', K.standings, request[1], 'COUNT', 200))
local answer = {cursor, #found / 2}
for i = 1, #found, 2 do
  local standing = read_standing(found[i + 1])
  local expected = not standing.paused and standing.next >= 0 and standing.next or nil
  local tick = redis.call('ZSCORE', K.ticking, found[i])
  if expected ~= (tick and tonumber(tick) or nil) then answer[#answer + 1] = found[i] end
end
return answer

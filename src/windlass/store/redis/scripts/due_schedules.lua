-- due_schedules: schedules of which a tick has come, the longest overdue first, a portion at a time.
-- of the office
-- The request is how many to look at, and how many to pass over. The answer is the store's time, the moment of the next
-- tick if none has come (empty: nobody knows of any), whether there may be more, and name, standing, settings of each.
-- uses: standing
-- keys: schedules
local problem = strange()
if problem then return problem end
local MOST_TEXT = 500000
local now = the_time()
local most, skip = unpack(request, 1, 2)
local names = redis.call('ZRANGEBYSCORE', K.ticking, '-inf', now, 'LIMIT', skip, most)
if #names == 0 then return {now, redis.call('ZRANGE', K.ticking, 0, 0, 'WITHSCORES')[2] or '', 0} end
local standings = redis.call('HMGET', K.standings, unpack(names))
local answer, size = {now, '', #names == most and 1 or 0}, 0
for i, name in ipairs(names) do
  if size > MOST_TEXT then
    answer[3] = 1
    break
  end
  if standings[i] then
    local settings, n = redis.call('HGET', K.schedules, name) or '', #answer
    size = size + #settings
    answer[n + 1], answer[n + 2], answer[n + 3] = name, standings[i], settings
  else
    redis.call('ZREM', K.ticking, name)  -- somebody has dropped it by hand
  end
end
return answer

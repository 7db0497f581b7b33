-- due_schedules: schedules with a due tick, the longest overdue first, some at a time. Request: the maximum, and
-- how many to skip. Reply: the time, the moment of the next tick if none is due (empty: none), whether there may
-- be more, and name, state, settings of each.
--! scope: global
--! effect: writes
--! uses: schedule_state
local MAX_TEXT = 500000
local now = now_micros()
local max_count, skip = unpack(request, 1, 2)
local names = redis.call('ZRANGEBYSCORE', K.next_ticks, '-inf', now, 'LIMIT', skip, max_count)
if #names == 0 then return {now, redis.call('ZRANGE', K.next_ticks, 0, 0, 'WITHSCORES')[2] or '', 0} end
local states = redis.call('HMGET', K.schedule_states, unpack(names))
local answer, size = {now, '', #names == max_count and 1 or 0}, 0
for i, name in ipairs(names) do
  if size > MAX_TEXT then
    answer[3] = 1
    break
  end
  if states[i] then
    local settings, n = redis.call('HGET', K.schedules, name) or '', #answer
    size = size + #settings
    answer[n + 1], answer[n + 2], answer[n + 3] = name, states[i], settings
  else
    redis.call('ZREM', K.next_ticks, name)  -- dropped by hand
  end
end
return answer

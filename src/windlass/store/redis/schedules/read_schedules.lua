-- read_schedules: schedules by name, with their plans. Request: {name} of each. Reply: the time, the last tick of
-- removed schedules, and {state, settings, plan} of each, or nothing, up to a bound of text.
--! scope: global
--! effect: reads
--! uses: schedule_state
local MAX_TEXT = 500000
local states, plans = values_by_name(K.schedule_states), values_by_name(K.plans)
local answer, size = {now_micros(), tonumber(redis.call('HGET', K.meta, 'furthest')) or 0}, 0
for i, each in ipairs(request) do
  if size > MAX_TEXT then break end
  local settings = states[i] and (redis.call('HGET', K.schedules, each[1]) or '')
  answer[i + 2] = settings and {states[i], settings, plans[i]}
  size = size + (settings and #settings or 0) + (plans[i] and #plans[i] or 0)
end
return answer

-- plan_ticks: store plans for due ticks before any queue is called. While a schedule has a plan, nothing else changes
-- it, and any process may finish the plan. Request: {name} of each schedule; blobs for each: revision, next tick and
-- creation time as they follow the stamp, and the plan. Reply: the time, the last tick of removed schedules, the number
-- of the first plan, then for each its state (nothing: it has changed) and the plan that it had before, if any.
--! scope: global
--! effect: grows
--! uses: schedule_state
local now = now_micros()
local states, plans = values_by_name(K.schedule_states), values_by_name(K.plans)
local number = new_stamps(#request, now)
local answer, planned = {now, tonumber(redis.call('HGET', K.meta, 'furthest')) or 0, number}, {}
for i, each in ipairs(request) do
  local state, plan, n = states[i], plans[i], 2 * i + 2
  answer[n], answer[n + 1] = false, plan
  if state and string.sub(state, 9, 32) == ARGV[n] and string.byte(state, PAUSED_AT) == 0 then
    answer[n] = state
    if not plan then
      planned[#planned + 1] = each[1]
      planned[#planned + 1] = struct.pack('>I8', number + i - 1) .. ARGV[n + 1]
    end
  end
end
if #planned > 0 then redis.call('HSET', K.plans, unpack(planned)) end
return answer

-- audit_schedules: schedules whose entry in `next_ticks` does not match their state, some at a time. Request:
-- {cursor}. Reply: the next cursor (0: the end), how many, and names.
--! scope: global
--! effect: reads
--! uses: schedule_state
local cursor, found = unpack(redis.call('HSCAN', K.schedule_states, request[1], 'COUNT', 200))
local answer = {cursor, #found / 2}
for i = 1, #found, 2 do
  local state = read_state(found[i + 1])
  local expected = not state.paused and state.next >= 0 and state.next or nil
  local tick = redis.call('ZSCORE', K.next_ticks, found[i])
  if expected ~= (tick and tonumber(tick) or nil) then answer[#answer + 1] = found[i] end
end
return answer

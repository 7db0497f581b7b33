-- set_schedules: write schedules, each if it has not changed since it was read and has no plan. Request: {name,
-- stamp (0: new), next tick (nothing: none)} of each; blobs: state without stamp and settings of each. Reply: 1
-- for each that was written, else 0.
--! scope: global
--! effect: writes
--! uses: schedule_state
local states, plans = values_by_name(K.schedule_states), values_by_name(K.plans)
local answer, written, settings = {}, {}, {}
for i, each in ipairs(request) do
  local stamp = states[i] and read_state(states[i]).stamp or 0
  answer[i] = (stamp == each[2] and not plans[i]) and 1 or 0
  if answer[i] == 1 then
    written[#written + 1] = {each[1], ARGV[2 * i + 2], each[3]}
    settings[#settings + 1] = each[1]
    settings[#settings + 1] = ARGV[2 * i + 3]
  end
end
if #settings > 0 then redis.call('HSET', K.schedules, unpack(settings)) end
write_states(written, now_micros())
return answer

-- advance_schedules: remove plans, if they still exist, and advance their schedules. Request: {name, number of the plan,
-- next tick (nothing: none)} of each; blobs: states without stamp (empty: only remove the plan, because its queue knows a
-- later one). Reply: how many plans were removed.
--! scope: global
--! effect: writes
--! uses: schedule_state
local plans = values_by_name(K.plans)
local written, over = {}, {}
for i, each in ipairs(request) do
  if plans[i] and struct.unpack('>I8', plans[i]) == each[2] then
    if ARGV[3 + i] ~= '' then written[#written + 1] = {each[1], ARGV[3 + i], each[3]} end
    over[#over + 1] = each[1]
  end
end
write_states(written, now_micros())
if #over > 0 then redis.call('HDEL', K.plans, unpack(over)) end
return #over

-- drop_plans: drop plans that their queues refused because they know later ones: after a failover the global keys
-- may have lost those. Each if it is still there. Request: {name, number of the plan} of each. Reply: how many.
--! scope: global
--! effect: writes
--! uses: schedule_state
local dropped = {}
for i, plan in ipairs(named(K.plans)) do
  if plan and struct.unpack('>I8', plan) == request[i][2] then dropped[#dropped + 1] = request[i][1] end
end
if #dropped > 0 then redis.call('HDEL', K.plans, unpack(dropped)) end
return #dropped

-- drop_plans: plans that their queues did not take, because they know of later ones: after a failover the office may have lost
-- those, and a clock that is behind gave a lower number. Each if it is still there; then it is decided anew.
-- of the office
-- The request is {name, number of the plan} of each. The answer is how many went.
-- uses: standing
local problem = strange()
if problem then return problem end
local dropped = {}
for i, plan in ipairs(named(K.plans)) do
  if plan and struct.unpack('>I8', plan) == request[i][2] then dropped[#dropped + 1] = request[i][1] end
end
if #dropped > 0 then redis.call('HDEL', K.plans, unpack(dropped)) end
return #dropped

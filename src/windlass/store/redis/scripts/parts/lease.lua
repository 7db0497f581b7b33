-- lease: whether a runner may claim in this queue. What is kept here was true when the office was asked last: who may
-- not claim by it answers NO_LEASE, and the caller asks the office again (leases.py, `embark`) before it gives up.
-- keys: leases
local NO_LEASE = 'no lease'

local function has_lease(runner, now)
  local valid = redis.call('HGET', K.leases, runner)
  return valid and tonumber(valid) > now
end

-- lease: whether a runner may claim in this queue, by the queue's copy of its lease. Without one the reply is
-- NO_LEASE, and the caller reads the global lease (leases.py, `allow_runner`) before it gives up.
--! keys: leases
local NO_LEASE = 'no lease'

local function has_lease(runner, now)
  local valid = redis.call('HGET', K.leases, runner)
  return valid and tonumber(valid) > now
end

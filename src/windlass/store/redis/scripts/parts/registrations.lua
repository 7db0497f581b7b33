-- registrations: the runners of a worker, and the queues in which they may hold jobs. Members sort by worker and
-- runner.
--! keys: registrations
local function registration_of(worker, runner, queue) return worker .. '\0' .. runner .. '\0' .. queue end

local function registrations_from(head)
  return redis.call('ZRANGEBYLEX', K.registrations, '[' .. head, '(' .. head .. '\255')
end

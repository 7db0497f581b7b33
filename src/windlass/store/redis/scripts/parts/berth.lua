-- berth: which runners a worker has, and in which queues they may hold jobs. Members sort by worker and runner.
-- keys: berths
local function berth_of(worker, runner, queue) return worker .. '\0' .. runner .. '\0' .. queue end

local function berths_from(head)
  return redis.call('ZRANGEBYLEX', K.berths, '[' .. head, '(' .. head .. '\255')
end

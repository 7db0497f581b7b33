-- workers: the registry of workers.
local SILENT_AFTER = 60000000  -- as in store/rows.py
local MAX_FORGOTTEN = 100

local function forget_worker(worker)
  redis.call('HDEL', K.workers, worker)
  redis.call('ZREM', K.heartbeats, worker)
end

-- Forget workers that ended without unregistering. A heartbeat in the future is from before the clock was set back.
local function forget_silent_workers(now)
  local silent = redis.call('ZRANGEBYSCORE', K.heartbeats, '-inf', now - SILENT_AFTER, 'LIMIT', 0, MAX_FORGOTTEN)
  for _, worker in ipairs(silent) do forget_worker(worker) end
  local ahead = redis.call('ZRANGEBYSCORE', K.heartbeats, now + SILENT_AFTER, '+inf', 'LIMIT', 0, MAX_FORGOTTEN)
  for _, worker in ipairs(ahead) do forget_worker(worker) end
end

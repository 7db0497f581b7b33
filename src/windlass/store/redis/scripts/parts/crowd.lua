-- crowd: workers as the office keeps them.
-- uses: office
-- keys: workers beats
local SILENT_AFTER = 60000000  -- as store/workers.py has it
local MOST_FORGOTTEN = 100

local function forget_worker(worker)
  redis.call('HDEL', K.workers, worker)
  redis.call('ZREM', K.beats, worker)
end

-- Who ended without signing off. A beat that lies ahead is from before the clock was set back.
local function forget_dead(now)
  local silent = redis.call('ZRANGEBYSCORE', K.beats, '-inf', now - SILENT_AFTER, 'LIMIT', 0, MOST_FORGOTTEN)
  for _, worker in ipairs(silent) do forget_worker(worker) end
  local ahead = redis.call('ZRANGEBYSCORE', K.beats, now + SILENT_AFTER, '+inf', 'LIMIT', 0, MOST_FORGOTTEN)
  for _, worker in ipairs(ahead) do forget_worker(worker) end
end

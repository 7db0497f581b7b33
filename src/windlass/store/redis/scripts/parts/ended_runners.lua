-- ended_runners: ended runners are remembered for a day.
--! keys: ended_runners
local REMEMBERED = 86400000000
local MAX_FORGOTTEN = 20  -- more than come

local function remember_ended_runner(runner, now)
  redis.call('ZADD', K.ended_runners, now + REMEMBERED, runner)
  local old = redis.call('ZRANGEBYSCORE', K.ended_runners, '-inf', now, 'LIMIT', 0, MAX_FORGOTTEN)
  if #old > 0 then redis.call('ZREM', K.ended_runners, unpack(old)) end
end

-- gone: runners that have ended for good are remembered for a day.
-- keys: gone
local REMEMBERED = 86400000000
local MOST_FORGOTTEN = 20  -- more than come

local function remember_gone(runner, now)
  redis.call('ZADD', K.gone, now + REMEMBERED, runner)
  local old = redis.call('ZRANGEBYSCORE', K.gone, '-inf', now, 'LIMIT', 0, MOST_FORGOTTEN)
  if #old > 0 then redis.call('ZREM', K.gone, unpack(old)) end
end

-- ends: who waits for jobs of this queue is told that they have ended, or have gone to another queue. He listens to the
-- queue itself, so that nothing else is done where nobody waits, and to his jobs, each of which has a channel.
-- keys: queue
-- On a cluster since 7.0 as in hint.lua. A user may not be allowed to ask who listens: then nobody is told, and looks.
local function listeners(channels)
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local found = sharded and redis.pcall('PUBSUB', 'SHARDNUMSUB', unpack(channels))
  if found and not found.err and #found > 0 then
    for i = 2, #found, 2 do
      if found[i] > 0 then return found, 'SPUBLISH' end
    end
  end
  found = redis.pcall('PUBSUB', 'NUMSUB', unpack(channels))
  return found.err and {} or found, 'PUBLISH'
end

local is_awaited
local function awaited()
  if is_awaited == nil then
    local found = listeners({(string.gsub(K.queue, ':queue$', ':ends'))})
    is_awaited = #found > 0 and found[2] > 0
  end
  return is_awaited
end

-- These ids, id → anything.
local function tell_ends(ids)
  local channels = {}
  local head = string.gsub(K.queue, ':queue$', ':ends:')
  for id in pairs(ids) do channels[#channels + 1] = head .. id end
  if #channels == 0 then return end
  local found, publish = listeners(channels)
  for i = 1, #found, 2 do
    if found[i + 1] > 0 then redis.pcall(publish, found[i], '') end
  end
end

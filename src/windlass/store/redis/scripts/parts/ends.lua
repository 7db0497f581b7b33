-- ends: who waits for jobs of this queue is told that they have ended, or have gone to another queue. He listens to the
-- queue itself, so that nothing else is done where nobody waits, and to his jobs, each of which has a channel.
-- keys: queue
-- On a cluster since 7.0 as in hint.lua. A user may not be allowed to ask who listens: then nobody is told, and looks.
local function listening(count, channels)
  local found = redis.pcall('PUBSUB', count, unpack(channels))
  return found.err and {} or found
end

-- On which of these channels anybody listens, and whether as on a shard.
local function listened(channels)
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local heard = {}
  for _, count in ipairs(sharded and {'SHARDNUMSUB', 'NUMSUB'} or {'NUMSUB'}) do
    local found = listening(count, channels)
    for i = 1, #found, 2 do
      if found[i + 1] > 0 then heard[found[i]] = count end
    end
  end
  return heard
end

local is_awaited
local function awaited()
  if is_awaited == nil then is_awaited = next(listened({(string.gsub(K.queue, ':queue$', ':ends'))})) ~= nil end
  return is_awaited
end

-- These ids, id → anything.
local function tell_ends(ids)
  local channels, head = {}, string.gsub(K.queue, ':queue$', ':ends:')
  for id in pairs(ids) do channels[#channels + 1] = head .. id end
  for channel, count in pairs(listened(channels)) do
    if count == 'NUMSUB' then redis.pcall('PUBLISH', channel, '') else redis.pcall('SPUBLISH', channel, '') end
  end
end

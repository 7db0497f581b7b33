-- completion_hints: publish the end of jobs, or their move to another queue. Waiters subscribe to the queue's
-- channel, so that nothing else is done without waiters, and to a channel for each job. Sharded as in
-- hint.lua. A user without the right to PUBSUB gets no hints, and polls.
local function listening(count, channels)
  local found = redis.pcall('PUBSUB', count, unpack(channels))
  return found.err and {} or found
end

-- Which of these channels have subscribers, and whether sharded ones.
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

local waiters_known
local function has_waiters()
  if waiters_known == nil then waiters_known = next(listened({(string.gsub(K.queue, ':queue$', ':ends'))})) ~= nil end
  return waiters_known
end

-- These ids, id → anything.
local function publish_completions(ids)
  local channels, head = {}, string.gsub(K.queue, ':queue$', ':ends:')
  for id in pairs(ids) do channels[#channels + 1] = head .. id end
  for channel, count in pairs(listened(channels)) do
    if count == 'NUMSUB' then redis.pcall('PUBLISH', channel, '') else redis.pcall('SPUBLISH', channel, '') end
  end
end

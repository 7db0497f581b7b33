-- completion_hints: publish the end of jobs, or their move to another queue. Waiters subscribe to a channel for each
-- job, and to one of the queue: without subscribers to that, nothing else is done. Channels are sharded as in
-- hint.lua. A user without the right to PUBSUB publishes nothing, and waiters poll.
local function count_subscribers(count, channels)
  local found = redis.pcall('PUBSUB', count, unpack(channels))
  return found.err and {} or found
end

-- By channel with subscribers: the command that counted them, SHARDNUMSUB or NUMSUB.
local function subscribed(channels)
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local found_by = {}
  for _, count in ipairs(sharded and {'SHARDNUMSUB', 'NUMSUB'} or {'NUMSUB'}) do
    local found = count_subscribers(count, channels)
    for i = 1, #found, 2 do
      if found[i + 1] > 0 then found_by[found[i]] = count end
    end
  end
  return found_by
end

local waiters_exist
local function has_waiters()
  if waiters_exist == nil then waiters_exist = next(subscribed({(string.gsub(K.queue, ':queue$', ':ends'))})) ~= nil end
  return waiters_exist
end

-- Publish the end of the jobs whose ids are the keys of `ids`.
local function publish_completions(ids)
  local channels, head = {}, string.gsub(K.queue, ':queue$', ':ends:')
  for id in pairs(ids) do channels[#channels + 1] = head .. id end
  for channel, count in pairs(subscribed(channels)) do
    if count == 'NUMSUB' then redis.pcall('PUBLISH', channel, '') else redis.pcall('SPUBLISH', channel, '') end
  end
end

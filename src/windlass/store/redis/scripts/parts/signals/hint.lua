-- hint: publish that a type of this queue has its first pending job. On a cluster of Redis 7 or later it goes to a
-- shard channel, which is not broadcast to every server. A user may lack the right to either; even so the call succeeds.
local function publish_hint()
  local channel = string.gsub(K.queue, ':queue$', ':hints')
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local said = sharded and redis.pcall('SPUBLISH', channel, '')
  if not said or type(said) == 'table' then redis.pcall('PUBLISH', channel, '') end
end

-- Publish a hint when jobs end in a queue that was at its concurrency limit.
local function hint_if_room(jobs)
  local max_count = tonumber(redis.call('HGET', K.queue, 'max_concurrency') or nil)
  if jobs == 0 or not max_count then return end
  local running, pending = unpack(redis.call('HMGET', K.counts, 'r', 'p'))
  running = tonumber(running or 0)
  if running < max_count and running + jobs >= max_count and tonumber(pending or 0) > 0 then publish_hint() end
end

-- hint: publish that a type of this queue has its first pending job. On a cluster since Redis 7.0 to a shard
-- channel, which is not broadcast to every server. A user may lack the right to either: hints may be lost, but the
-- call must succeed.
--! keys: queue
local function publish_hint()
  local channel = string.gsub(K.queue, ':queue$', ':hints')
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local said = sharded and redis.pcall('SPUBLISH', channel, '')
  if not said or type(said) == 'table' then redis.pcall('PUBLISH', channel, '') end
end

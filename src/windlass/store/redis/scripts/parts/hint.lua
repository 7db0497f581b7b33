-- hint: tell those who wait that a type of this queue has work, which it had not before.
-- keys: queue
-- What is said on a shard channel is not carried to every server of a cluster (since 7.0; CLUSTERED: see script.py). A
-- user may be allowed the one and not the other: hints may be lost, but what was asked for must be done.
local function announce()
  local channel = string.gsub(K.queue, ':queue$', ':hints')
  local sharded = CLUSTERED and (redis.REDIS_VERSION_NUM or 0) >= 0x070000
  local said = sharded and redis.pcall('SPUBLISH', channel, '')
  if not said or type(said) == 'table' then redis.call('PUBLISH', channel, '') end
end

-- hint: tell those who wait that a type of this queue has work, which it had not before.
-- keys: queue
local function announce()
  local channel = string.gsub(K.queue, ':queue$', ':hints')
  redis.call('PUBLISH', channel, '')
end

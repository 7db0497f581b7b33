-- global_call: the start of every script for global keys.
--! uses: request

-- Nil if this is the store that the caller knows, else the error to reply with.
local function check_store()
  if redis.call('HGET', K.meta, 'store') == ARGV[1] then return nil end
  return redis.error_reply('WINDLASS_EMPTIED')
end

-- As in parts/call/queue_call.lua: call this before the first write of a script that stores no jobs.
local function allow_write_at_memory_limit() redis.call('HDEL', K.meta, '') end

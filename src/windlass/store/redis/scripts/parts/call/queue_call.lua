-- queue_call: the start of every script for a queue.
--! uses: request

-- Nil if the queue exists and belongs to the store that the caller knows, else the error to reply with.
local function check_store()
  local store = redis.call('HGET', K.queue, 'store')
  if store == ARGV[1] then return nil end
  return redis.error_reply(store and 'WINDLASS_EMPTIED' or 'WINDLASS_NEW_QUEUE')
end

-- A server at its memory limit refuses a script whose first write may need memory, but not one that has written before.
-- So a script that stores no jobs calls this before its first write. It changes nothing.
local function allow_write_at_memory_limit() redis.call('HDEL', K.queue, '') end

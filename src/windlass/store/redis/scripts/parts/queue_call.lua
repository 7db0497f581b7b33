-- queue_call: the start of every script for a queue.
--! uses: request

-- Whether the queue is there, and of the store that the caller knows: nil, or the error to answer with.
local function check_store()
  local store = redis.call('HGET', K.queue, 'store')
  if store == ARGV[1] then return nil end
  return redis.error_reply(store and 'WINDLASS_EMPTIED' or 'WINDLASS_NEW_QUEUE')
end

-- A server at its memory limit refuses a script whose first write may need memory; one that has written before goes on.
-- So this comes before the first write of a script that stores no jobs. It changes nothing.
local function allow_write_at_memory_limit() redis.call('HDEL', K.queue, '') end

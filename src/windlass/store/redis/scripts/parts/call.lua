-- call: what every script for a queue begins with.
-- uses: asked
-- keys: queue

-- Whether the queue is there, and of the store that the caller knows: nil, or the error to answer with.
local function strange()
  local store = redis.call('HGET', K.queue, 'store')
  if store == ARGV[1] then return nil end
  return redis.error_reply(store and 'WINDLASS_EMPTIED' or 'WINDLASS_NEW_QUEUE')
end

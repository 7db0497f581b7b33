-- open_queue: create a queue with default settings. Safe to repeat.
--! effect: writes
--! store: any
local store = redis.call('HGET', K.queue, 'store')
if store and store ~= ARGV[1] then return redis.error_reply('WINDLASS_EMPTIED') end
if store then return 0 end
allow_write_at_memory_limit()
redis.call('HSET', K.queue, 'store', ARGV[1], unpack(request))
return 1

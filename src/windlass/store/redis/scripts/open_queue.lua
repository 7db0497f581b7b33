-- open_queue: begin to keep a queue, as it is when nobody has said anything of it. Again is the same as once.
-- uses: call
-- keys: queue
local store = redis.call('HGET', K.queue, 'store')
if store and store ~= ARGV[1] then return redis.error_reply('WINDLASS_EMPTIED') end
if store then return 0 end
redis.call('HSET', K.queue, 'store', ARGV[1], unpack(request))
return 1

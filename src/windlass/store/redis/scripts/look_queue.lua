-- look_queue: the queue as it is kept. The request is the fields that are wanted. The answer is the store's time, how often
-- the queue was written, and those fields.
-- uses: call
-- keys: queue
local problem = strange()
if problem then return problem end
local values = redis.call('HMGET', K.queue, unpack(request))
return {the_time(), tonumber(redis.call('HGET', K.queue, 'version') or 0), values}

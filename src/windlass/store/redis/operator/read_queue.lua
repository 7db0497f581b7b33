-- read_queue: fields of the queue's hash. Request: their names. Reply: the time, the version of the settings, and
-- the values.
--! effect: reads
local values = redis.call('HMGET', K.queue, unpack(request))
return {now_micros(), tonumber(redis.call('HGET', K.queue, 'version') or 0), values}

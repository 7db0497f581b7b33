-- beat: register a worker, or refresh what it says of itself.
-- of the office
-- The request is worker, what it says.
-- uses: office, crowd
local problem = strange()
if problem then return problem end
local now = the_time()
local worker, info = unpack(request, 1, 2)
local before = redis.call('HGET', K.workers, worker)
local started = before and struct.unpack('>i8', before) or now
redis.call('HSET', K.workers, worker, struct.pack('>i8', started) .. info)
redis.call('ZADD', K.beats, now, worker)
return 1

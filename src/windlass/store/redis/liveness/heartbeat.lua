-- heartbeat: register a worker, or refresh its report. Request: worker, report.
--! scope: global
--! effect: writes
--! uses: workers
local now = now_micros()
local worker, info = unpack(request, 1, 2)
local before = redis.call('HGET', K.workers, worker)
local started = before and struct.unpack('>i8', before) or now
redis.call('HSET', K.workers, worker, struct.pack('>i8', started) .. info)
redis.call('ZADD', K.heartbeats, now, worker)
return 1

-- heartbeat: register workers, or refresh their reports. Request: pairs of worker and report.
--! scope: global
--! effect: writes
--! uses: workers
local now = now_micros()
for _, pair in ipairs(request[1]) do
  local worker, info = unpack(pair, 1, 2)
  local before = redis.call('HGET', K.workers, worker)
  local started = before and struct.unpack('>i8', before) or now
  redis.call('HSET', K.workers, worker, struct.pack('>i8', started) .. info)
  redis.call('ZADD', K.heartbeats, now, worker)
end
return 1

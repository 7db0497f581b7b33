-- enqueue_plain: as enqueue.lua, for the usual jobs: alike, due at once, without key, parent or expiry. Request: a
-- batch of one kind of such jobs; ARGV[4]: its blob. Reply: {0}: all are stored; OTHER: nothing is done, and
-- enqueue.lua must be called.
--! effect: grows
--! store: any
--! uses: record, known_ids, hint
local OTHER = 'other'
local settings = redis.call('HMGET', K.queue, 'store', 'closed', 'fair', 'max_attempts', 'timeout', 'last_enqueue')
if settings[1] ~= ARGV[1] then return check_store() end
local now = now_micros()
if settings[2] == '1' or settings[3] == '1' or now < (tonumber(settings[6]) or 0) then return OTHER end
local flags, name, sort_priority, _, _, max_attempts, timeout, _, _, ids, payloads = unpack(request[1][1], 1, 11)
local type = redis.call('HGET', K.types, name)
if not type then return OTHER end
for _, value in ipairs(known_ids(ids, now)) do
  if value then return OTHER end
end

-- The last rank must not be ahead of the clock. Mostly the last pending job is of this type and sort_priority.
local head = struct.pack('>I4I2', type, sort_priority + LEVEL)
local last = redis.call('ZREVRANGE', K.ready, 0, 0)[1]
if last and string.sub(last, 1, 6) ~= head then
  last = redis.call('ZREVRANGEBYLEX', K.ready, '(' .. head .. '\255\255\255\255\255\255\255\255\255', '[' .. head, 'LIMIT', 0, 1)[1]
end
if last and struct.unpack('>I8', last, 7) > now then return OTHER end

local fields, order = ARGV[4], head .. struct.pack('>I8', now)
local record = struct.pack(HEAD_A, PENDING, 0, 0, 0, now, 0, 0, 0)
  .. struct.pack(HEAD_B, flags, type, sort_priority, now, now, now, timeout or settings[5], max_attempts or settings[4], #fields)
  .. fields
local records, index, ready = {}, {}, {}
for i, id in ipairs(ids) do
  local n, payload = 2 * i, payloads[i]
  records[n - 1], records[n] = id, record .. struct.pack('>I4', #payload) .. payload
  index[n - 1], index[n] = 0, id
  ready[n - 1], ready[n] = 0, order .. id
end
redis.call('HSET', K.queue, 'last_enqueue', now)
redis.call('HSET', K.jobs, unpack(records))
redis.call('ZADD', K.ids, unpack(index))
redis.call('ZADD', K.ready, unpack(ready))
redis.call('HINCRBY', K.counts, 'p', #ids)
if redis.call('HINCRBY', K.pending_counts, type, #ids) == #ids then publish_hint() end
return {0}

-- enqueue: store new jobs, all of them or none; a known id answers with its job. The request is kinds of jobs that are
-- alike but for their ids and payloads; ARGV[4] and on are the fields of each kind.
-- takes jobs in
-- uses: call, record, index
-- keys: queue counts jobs ids types ready pend lanes due expiring tombs
local problem = strange()
if problem then return problem end
local now = the_time()
local settings = redis.call('HMGET', K.queue, 'max_attempts', 'timeout', 'closed')
local existing = {}

local function number_of(name)
  local number = redis.call('HGET', K.types, name)
  if number then return tonumber(number) end
  number = redis.call('HLEN', K.types) + 1
  redis.call('HSET', K.types, name, number)
  return number
end

local function last_rank(type, urgency)
  local head = struct.pack('>I4I2', type, urgency + 32768)
  local last = redis.call('ZREVRANGEBYLEX', K.ready, '(' .. head .. '\255\255\255\255\255\255\255\255\255', '[' .. head, 'LIMIT', 0, 1)[1]
  return last and struct.unpack('>I8', last, 7) or 0
end

local function store_kind(kind, fields)
  local flags, name, urgency, run_at, delay, max_attempts, timeout, expires_at, expires, ids, payloads = unpack(kind, 1, 11)
  local known = redis.call('HMGET', K.jobs, unpack(ids))
  local buried = redis.call('HMGET', K.tombs, unpack(ids))
  local type = number_of(name)
  run_at = run_at or now + delay
  if not expires_at then expires_at = expires and now + expires or 0 end
  local letter = run_at > now and SCHEDULED or PENDING
  local rank = math.max(run_at, now)
  if letter == PENDING then
    local last = last_rank(type, urgency)
    if last > now then rank = last + 1 end
  end
  local head = struct.pack(HEAD_A, letter, 0, 0, 0, now, 0, 0, 0)
    .. struct.pack(HEAD_B, flags, type, urgency, 0, rank, run_at, now, expires_at, timeout or tonumber(settings[2]),
      max_attempts or tonumber(settings[1]), -1, 0, 0, 0, 0, 0, 0, #fields)
    .. fields
  local records, index, places, expiring, stored = {}, {}, {}, {}, 0
  local place = struct.pack('>I4I2I8', type, urgency + 32768, rank)
  for i, id in ipairs(ids) do
    if known[i] or buried[i] then
      existing[#existing + 1] = id
    else
      stored = stored + 1
      local n = 2 * stored
      local payload = payloads[i]
      records[n - 1], records[n] = id, head .. struct.pack('>I4', #payload) .. payload
      index[n - 1], index[n] = 0, id
      if letter == PENDING then places[n - 1], places[n] = 0, place .. id else places[n - 1], places[n] = run_at, id end
      if expires_at > 0 then expiring[n - 1], expiring[n] = expires_at, id end
    end
  end
  if stored == 0 then return end
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ids, unpack(index))
  if expires_at > 0 then redis.call('ZADD', K.expiring, unpack(expiring)) end
  bump(letter, stored)
  if letter == SCHEDULED then
    redis.call('ZADD', K.due, unpack(places))
  else
    redis.call('ZADD', K.ready, unpack(places))
    if redis.call('HINCRBY', K.pend, type, stored) == stored then announce() end
  end
end

for i, kind in ipairs(request) do store_kind(kind, ARGV[3 + i]) end
return existing

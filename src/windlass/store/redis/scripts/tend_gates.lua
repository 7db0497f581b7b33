-- tend_gates: buckets that are full again are as good as none, and go. Those from a time that has not come are from before
-- the clock was set back: they keep what they hold, and are filled from now on; who waits for them comes by so much earlier.
-- There may be very many of these: they are told a portion at a time, and those of one key before those of the next.
-- The request is a cursor of HSCAN, 0 to begin with. The answer is the next one, 0 at the end.
-- uses: call, record, index, gate
-- keys: queue jobs gates aside due
local SET_BACK = 10000000  -- as core/rate.py has it: less is waited for
local BUCKETS, MOST_TOLD = 200, 250
local TURNING = '>i8i8'  -- what their moments were reckoned from, and from what they are now; the last place follows
local KEY = 32
local problem = strange()
if problem then return problem end
local now = the_time()
local full = false  -- whether this call has done its share

local function turn_back(member, at, since)
  local id = string.sub(member, -36)
  local r = read_record(redis.call('HGET', K.jobs, id))
  if r.run_at < at then return end
  r.run_at, r.version = r.run_at + since - at, r.version + 1
  redis.call('HSET', K.jobs, id, write_record(r))
  redis.call('ZADD', K.due, r.run_at, id)
end

-- Some of those who wait for a key, after a place (the key itself: from the first). What is left is remembered.
local function turn_back_some(place, at, since)
  local members = redis.call('ZRANGEBYLEX', K.aside, '(' .. place, '(' .. string.sub(place, 1, KEY) .. '\255\255\255', 'LIMIT',
    0, MOST_TOLD)
  for _, member in ipairs(members) do turn_back(member, at, since) end
  full = #members == MOST_TOLD
  if full then
    redis.call('HSET', K.queue, 'turning', struct.pack(TURNING, at, since) .. members[MOST_TOLD])
  else
    redis.call('HDEL', K.queue, 'turning')
  end
end

local turning = redis.call('HGET', K.queue, 'turning')
if turning then
  local at, since, size = struct.unpack(TURNING, turning)
  turn_back_some(string.sub(turning, size), at, since)
  return request
end
local cursor, pairs_ = unpack(redis.call('HSCAN', K.gates, request, 'COUNT', BUCKETS))
for i = 1, #pairs_, 2 do
  local key, bucket = pairs_[i], read_gate(pairs_[i + 1])
  local at = bucket.at
  if at - now > SET_BACK then
    if not full then  -- else it is found again
      bucket.at = now
      set_gate(key, bucket, bucket.full_at - (at - now))
      if key ~= OWN then turn_back_some(key, at, now) end
    end
  elseif bucket.full_at <= now then
    redis.call('HDEL', K.gates, key)
  end
end
return cursor

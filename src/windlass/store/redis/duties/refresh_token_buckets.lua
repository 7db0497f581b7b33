-- refresh_token_buckets: drop token buckets that are full again. Token buckets from the future are from before the clock was
-- set back: they keep their tokens and refill from now on, and throttled jobs become due earlier by as much, a
-- portion at a time, key by key. Request: a cursor of HSCAN, 0 at first. Reply: the next one, 0 at the end.
--! effect: writes
--! uses: record, indexes, token_buckets
local SET_BACK = 10000000  -- as in core/flow/rate.py: after a smaller step back nothing is done
local TOKEN_BUCKETS, MAX_SHIFTED = 200, 250
local SHIFTING = '>i8i8'  -- the old and the new moment of the token bucket; the last place follows
local DIGEST_SIZE = 32
local now = now_micros()
local full = false  -- whether this call may do no more

local function shift_run_at(member, at, since)
  local id = string.sub(member, -36)
  local r = read_job(id)
  if not r or r.letter ~= THROTTLED then
    redis.call('ZREM', K.throttled, member)  -- removed by hand, or left by a stopped script
    return
  end
  if r.run_at < at then return end
  r.run_at, r.version = r.run_at + since - at, r.version + 1
  redis.call('HSET', K.jobs, id, write_record(r))
  redis.call('ZADD', K.due, r.run_at, id)
end

-- Shift some jobs that are throttled by a key, after a place (the key itself: from the first); the rest is left to
-- the next call.
local function shift_some(place, at, since)
  local members = redis.call('ZRANGEBYLEX', K.throttled, '(' .. place, '(' .. string.sub(place, 1, DIGEST_SIZE) .. '\255\255\255', 'LIMIT',
    0, MAX_SHIFTED)
  for _, member in ipairs(members) do shift_run_at(member, at, since) end
  full = #members == MAX_SHIFTED
  if full then
    redis.call('HSET', K.queue, 'shifting', struct.pack(SHIFTING, at, since) .. members[MAX_SHIFTED])
  else
    redis.call('HDEL', K.queue, 'shifting')
  end
end

local shifting = redis.call('HGET', K.queue, 'shifting')
if shifting then
  local at, since, size = struct.unpack(SHIFTING, shifting)
  shift_some(string.sub(shifting, size), at, since)
  return request
end
local cursor, pairs_ = unpack(redis.call('HSCAN', K.token_buckets, request, 'COUNT', TOKEN_BUCKETS))
for i = 1, #pairs_, 2 do
  local key, token_bucket = pairs_[i], read_token_bucket(pairs_[i + 1])
  local at = token_bucket.at
  if at - now > SET_BACK then
    if not full then  -- else the next round of calls finds it
      token_bucket.at = now
      store_token_bucket(key, token_bucket, token_bucket.full_at - (at - now))
      if key ~= QUEUE_TOKEN_BUCKET then shift_some(key, at, now) end
    end
  elseif token_bucket.full_at <= now then
    redis.call('HDEL', K.token_buckets, key)
  end
end
return cursor

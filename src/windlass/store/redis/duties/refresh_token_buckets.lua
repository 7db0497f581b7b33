-- refresh_token_buckets: drop token buckets that are full again. Those dated in the future are from before the clock was
-- set back: they keep their tokens and refill from now on, and throttled jobs become due earlier by the difference, a
-- portion at a time, key by key. Request: a cursor of HSCAN, 0 at first. Reply: the next one, 0 at the end.
--! effect: writes
--! uses: record, indexes, token_buckets
local SET_BACK = 10000000  -- as in core/flow/rate.py: after a smaller step back nothing is done
local TOKEN_BUCKETS, MAX_SHIFTED = 200, 250
local SHIFTING = '>i8i8'  -- the old and the new moment of the token bucket; the last member follows
local DIGEST_SIZE = 32
local now = now_micros()
local at_limit = false  -- whether this call has shifted as many jobs as it may

local function shift_run_at(member, old, new)
  local id = string.sub(member, -36)
  local r = read_job(id)
  if not r or r.letter ~= THROTTLED then
    redis.call('ZREM', K.throttled, member)  -- the job was removed by hand, or a script was stopped: the record decides
    return
  end
  if r.run_at < old then return end
  r.run_at, r.version = r.run_at + new - old, r.version + 1
  redis.call('HSET', K.jobs, id, write_record(r))
  redis.call('ZADD', K.due, r.run_at, id)
end

-- Shift some jobs that are throttled by a key, after a member (the key itself: from the first); the rest is left to
-- the next call. The token bucket was dated `old`, and is `new` now.
local function shift_some(after, old, new)
  local members = redis.call('ZRANGEBYLEX', K.throttled, '(' .. after, '(' .. string.sub(after, 1, DIGEST_SIZE) .. '\255\255\255', 'LIMIT',
    0, MAX_SHIFTED)
  for _, member in ipairs(members) do shift_run_at(member, old, new) end
  at_limit = #members == MAX_SHIFTED
  if at_limit then
    redis.call('HSET', K.queue, 'shifting', struct.pack(SHIFTING, old, new) .. members[MAX_SHIFTED])
  else
    redis.call('HDEL', K.queue, 'shifting')
  end
end

local shifting = redis.call('HGET', K.queue, 'shifting')
if shifting then
  local old, new, size = struct.unpack(SHIFTING, shifting)
  shift_some(string.sub(shifting, size), old, new)
  return request
end
local cursor, pairs_ = unpack(redis.call('HSCAN', K.token_buckets, request, 'COUNT', TOKEN_BUCKETS))
for i = 1, #pairs_, 2 do
  local key, token_bucket = pairs_[i], read_token_bucket(pairs_[i + 1])
  local at = token_bucket.at
  if at - now > SET_BACK then
    if not at_limit then  -- else the next round of calls finds it
      token_bucket.at = now
      store_token_bucket(key, token_bucket, token_bucket.full_at - (at - now))
      if key ~= QUEUE_TOKEN_BUCKET then shift_some(key, at, now) end
    end
  elseif token_bucket.full_at <= now then
    redis.call('HDEL', K.token_buckets, key)
  end
end
return cursor

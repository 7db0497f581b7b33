-- token_buckets: the stored token buckets of a queue (empty name) and of its concurrency keys (by digest): whole tokens,
-- part, period, moment, and the moment from which it is full and not needed. See to_token_bucket in duties/prune.py.
--! uses: token_bucket
local TOKEN_BUCKET = '>I4i8i8i8i8'
local QUEUE_TOKEN_BUCKET = ''

local function read_token_bucket(value)
  local token_bucket = {}
  token_bucket.whole, token_bucket.part, token_bucket.period, token_bucket.at, token_bucket.full_at = struct.unpack(TOKEN_BUCKET, value)
  return token_bucket
end

local function stored_token_bucket(key)
  local value = redis.call('HGET', K.token_buckets, key)
  return value and read_token_bucket(value) or nil
end

local function store_token_bucket(key, token_bucket, full_at)
  redis.call('HSET', K.token_buckets, key,
    struct.pack(TOKEN_BUCKET, token_bucket.whole, token_bucket.part, token_bucket.period, token_bucket.at, full_at))
end

-- Drop the full ones among about `count` token buckets, continuing where the last call stopped. If there are few, leave
-- them to `refresh_token_buckets`.
local FEW_TOKEN_BUCKETS = 512  -- up to this number HSCAN returns all, whatever COUNT says
local function drop_full_token_buckets(now, count)
  if redis.call('HLEN', K.token_buckets) <= FEW_TOKEN_BUCKETS then return end
  local cursor, found = unpack(redis.call('HSCAN', K.token_buckets, redis.call('HGET', K.queue, 'token_bucket_cursor') or '0', 'COUNT', count))
  local full = {}
  for i = 1, #found, 2 do
    if read_token_bucket(found[i + 1]).full_at <= now then full[#full + 1] = found[i] end
  end
  if #full > 0 then redis.call('HDEL', K.token_buckets, unpack(full)) end
  redis.call('HSET', K.queue, 'token_bucket_cursor', cursor)
end

-- The rate in the settings of a queue, or nil.
local function rate_of(tokens, period, burst)
  if not tokens then return nil end
  return {tokens = tonumber(tokens), period = tonumber(period), burst = tonumber(burst)}
end

-- buckets: the token buckets of a queue (empty name) and of its concurrency keys (by digest), as stored: whole
-- tokens, part, period, moment, and the moment from which it is full and not needed. See to_bucket in duties/prune.py.
--! uses: token_bucket
local BUCKET = '>I4i8i8i8i8'
local QUEUE_BUCKET = ''

local function read_bucket(value)
  local bucket = {}
  bucket.whole, bucket.part, bucket.period, bucket.at, bucket.full_at = struct.unpack(BUCKET, value)
  return bucket
end

local function stored_bucket(key)
  local value = redis.call('HGET', K.buckets, key)
  return value and read_bucket(value) or nil
end

local function store_bucket(key, bucket, full_at)
  redis.call('HSET', K.buckets, key,
    struct.pack(BUCKET, bucket.whole, bucket.part, bucket.period, bucket.at, full_at))
end

-- Drop full buckets, of about `count` from where the last call stopped. A few are left to `refresh_buckets`.
local FEW_BUCKETS = 512  -- up to this number HSCAN returns all, whatever COUNT says
local function drop_full_buckets(now, count)
  if redis.call('HLEN', K.buckets) <= FEW_BUCKETS then return end
  local cursor, found = unpack(redis.call('HSCAN', K.buckets, redis.call('HGET', K.queue, 'bucket_cursor') or '0', 'COUNT', count))
  local full = {}
  for i = 1, #found, 2 do
    if read_bucket(found[i + 1]).full_at <= now then full[#full + 1] = found[i] end
  end
  if #full > 0 then redis.call('HDEL', K.buckets, unpack(full)) end
  redis.call('HSET', K.queue, 'bucket_cursor', cursor)
end

-- A rate as the settings of a queue name it, or nil.
local function rate_of(tokens, period, burst)
  if not tokens then return nil end
  return {tokens = tonumber(tokens), period = tonumber(period), burst = tonumber(burst)}
end

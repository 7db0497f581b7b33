-- gate: the buckets of a queue (under the empty name) and of its keys (under their digests), as they are kept: whole
-- tokens, part of a token, period, moment, and the moment from which on it is full and as good as none. See gates.py.
-- uses: bucket
-- keys: gates
local GATE = '>I4i8i8i8i8'
local OWN = ''

local function read_gate(value)
  local bucket = {}
  bucket.whole, bucket.part, bucket.period, bucket.at, bucket.full_at = struct.unpack(GATE, value)
  return bucket
end

local function gate_of(key)
  local value = redis.call('HGET', K.gates, key)
  return value and read_gate(value) or nil
end

local function set_gate(key, bucket, full_at)
  redis.call('HSET', K.gates, key,
    struct.pack(GATE, bucket.whole, bucket.part, bucket.period, bucket.at, full_at))
end

-- A rate as the settings of a queue name it, or nil.
local function rate_of(tokens, period, burst)
  if not tokens then return nil end
  return {tokens = tonumber(tokens), period = tonumber(period), burst = tonumber(burst)}
end

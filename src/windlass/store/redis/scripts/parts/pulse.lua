-- pulse: leases as the office keeps them, and the grace that all of them get after a general silence.
-- uses: office
-- keys: leases lapses leader
local LEASE, LEASE_SIZE = '>i8i8B', 17
local NOBODY = ''
local SHORT = 100000  -- microseconds: no lease is so short that this would be a silence
local SET_BACK = 1000000

local function read_lease(runner)
  local value = redis.call('HGET', K.leases, runner)
  if not value then return nil end
  local lease = {}
  lease.expires, lease.length, lease.graced = struct.unpack(LEASE, value)
  lease.worker = string.sub(value, LEASE_SIZE + 1)
  return lease
end

local function write_lease(runner, lease)
  redis.call('HSET', K.leases, runner, struct.pack(LEASE, lease.expires, lease.length, lease.graced) .. lease.worker)
  redis.call('ZADD', K.lapses, lease.expires, runner)
end

local function drop_lease(runner)
  redis.call('HDEL', K.leases, runner)
  redis.call('ZREM', K.lapses, runner)
end

-- Nobody was heard of for so long: who may have been alive all the time gets one more lease, once until it renews.
local function give_grace(now, silence)
  for _, runner in ipairs(redis.call('ZRANGE', K.lapses, 0, -1)) do
    local lease = read_lease(runner)
    if lease and lease.graced == 0 and silence > lease.length / 2 then
      lease.expires, lease.graced = math.max(lease.expires, now + lease.length), 1
      write_lease(runner, lease)
    end
  end
end

-- The clock was set back: what was promised until a moment that is far ahead now would last for too long.
local function shorten(now)
  for _, runner in ipairs(redis.call('ZRANGE', K.lapses, 0, -1)) do
    local lease = read_lease(runner)
    if lease and lease.expires > now + lease.length then
      lease.expires = now + lease.length
      write_lease(runner, lease)
    end
  end
  if (tonumber(redis.call('HGET', K.leader, 'expires')) or 0) > now then redis.call('HSET', K.leader, 'expires', now) end
end

-- If nobody renewed for half a lease, the server was out of reach, or somebody has moved its clock: that is no one's
-- death. Whoever comes first afterwards grants everybody one more lease, counted from now.
local function feel_pulse(now)
  local silence = now - (tonumber(redis.call('HGET', K.leases, NOBODY)) or now)
  if silence > SHORT then give_grace(now, silence) elseif silence < -SET_BACK then shorten(now) end
  redis.call('HSET', K.leases, NOBODY, string.format('%.0f', now))
end

-- pulse: leases as the office keeps them, and the grace that all of them get after a general silence.
-- uses: office
-- keys: leases lapses leader
local LEASE, LEASE_SIZE = '>i8i8B', 17
local NOBODY = ''
local PULSE = '>i8i8'  -- when anybody was last heard of, and the length of the shortest lease
local NEVER = 2 ^ 52
local SET_BACK = 1000000

local function read_pulse(now)
  local value = redis.call('HGET', K.leases, NOBODY)
  if not value then return now, NEVER end
  local at, shortest = struct.unpack(PULSE, value)
  return at, shortest
end

local function write_pulse(at, shortest) redis.call('HSET', K.leases, NOBODY, struct.pack(PULSE, at, shortest)) end

local function read_lease(runner)
  local value = redis.call('HGET', K.leases, runner)
  if not value then return nil end
  local lease = {}
  lease.expires, lease.length, lease.graced = struct.unpack(LEASE, value)
  lease.worker = string.sub(value, LEASE_SIZE + 1)
  return lease
end

-- A lease that is shorter than all others makes shorter what counts as a silence.
local function note_length(length, now)
  local at, shortest = read_pulse(now)
  if length < shortest then write_pulse(at, length) end
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
-- The answer is the length of the shortest lease that there is.
local function give_grace(now, silence)
  local shortest = NEVER
  for _, runner in ipairs(redis.call('ZRANGE', K.lapses, 0, -1)) do
    local lease = read_lease(runner)
    if lease and lease.graced == 0 and silence > lease.length / 2 then
      lease.expires, lease.graced = math.max(lease.expires, now + lease.length), 1
      write_lease(runner, lease)
    end
    if lease then shortest = math.min(shortest, lease.length) end
  end
  return shortest
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
  local at, shortest = read_pulse(now)
  local silence = now - at
  if silence > shortest / 2 then shortest = give_grace(now, silence) elseif silence < -SET_BACK then shorten(now) end
  write_pulse(now, shortest)
end

-- pulse: leases as the office keeps them, and the grace that all of them get after a general silence. There may be very
-- many: they are told of it a portion at a time, by everybody who feels the pulse, and nobody counts as dead until all were.
-- uses: office
-- keys: leases lapses leader
local LEASE, LEASE_SIZE = '>i8i8B', 17
local NOBODY = ''
local PULSE = '>i8i8'  -- when anybody was last heard of, and the length of the shortest lease
local ROUND = '>i8i8i8'  -- since when they are told, of how long a silence, and the shortest length that was met so far
local PORTION = 100
local NEVER = 2 ^ 52
local SET_BACK = 1000000

-- When anybody was last heard of, the shortest length, and how far the leases were told of a silence (nil: all were).
local function read_pulse(now)
  local value = redis.call('HGET', K.leases, NOBODY)
  if not value then return now, NEVER end
  local at, shortest, size = struct.unpack(PULSE, value)
  if #value < size then return at, shortest end
  local round = {}
  round.at, round.silence, round.shortest, size = struct.unpack(ROUND, value, size)
  round.cursor = string.sub(value, size)
  return at, shortest, round
end

local function write_pulse(at, shortest, round)
  local value = struct.pack(PULSE, at, shortest)
  if round then value = value .. struct.pack(ROUND, round.at, round.silence, round.shortest) .. round.cursor end
  redis.call('HSET', K.leases, NOBODY, value)
end

-- Nobody was heard of for so long: who may have been alive all the time gets one more lease, once until it renews. If the
-- clock was set back, what was promised until a moment that is far ahead now would last for too long. Whether it changed.
local function tell(lease, round, now)
  if lease.expires > now + lease.length then
    lease.expires = now + lease.length
    return true
  end
  local since = lease.expires - lease.length
  if lease.graced == 1 or since >= round.at or round.silence <= lease.length / 2 then return false end
  lease.expires, lease.graced = math.max(lease.expires, now + lease.length), 1
  return true
end

local function lease_of(value)
  local lease = {}
  lease.expires, lease.length, lease.graced = struct.unpack(LEASE, value)
  lease.worker = string.sub(value, LEASE_SIZE + 1)
  return lease
end

-- As it holds now, whether it was told of a silence already or not.
local function read_lease(runner, now)
  local value = redis.call('HGET', K.leases, runner)
  if not value then return nil end
  local lease = lease_of(value)
  local _, _, round = read_pulse(now)
  if round then tell(lease, round, now) end
  return lease
end

local function write_lease(runner, lease)
  redis.call('HSET', K.leases, runner, struct.pack(LEASE, lease.expires, lease.length, lease.graced) .. lease.worker)
  redis.call('ZADD', K.lapses, lease.expires, runner)
end

-- A lease that is shorter than all others makes shorter what counts as a silence.
local function note_length(length, now)
  local at, shortest, round = read_pulse(now)
  if round then round.shortest = math.min(round.shortest, length) end
  if length < shortest or round then write_pulse(at, math.min(shortest, length), round) end
end

local function drop_lease(runner)
  redis.call('HDEL', K.leases, runner)
  redis.call('ZREM', K.lapses, runner)
end

-- Some more leases are told; the round, or nil after the last, and then the length of the shortest lease that there is.
local function tell_some(round, now)
  local cursor, found = unpack(redis.call('HSCAN', K.leases, round.cursor, 'COUNT', PORTION))
  for i = 1, #found, 2 do
    if found[i] ~= NOBODY then
      local lease = lease_of(found[i + 1])
      round.shortest = math.min(round.shortest, lease.length)
      if tell(lease, round, now) then write_lease(found[i], lease) end
    end
  end
  if cursor == '0' then return nil, round.shortest end
  round.cursor = cursor
  return round
end

-- The coordinator's office too was promised until a moment that is far ahead.
local function shorten_office(now)
  if (tonumber(redis.call('HGET', K.leader, 'expires')) or 0) > now then redis.call('HSET', K.leader, 'expires', now) end
end

-- If nobody renewed for half a lease, the server was out of reach, or somebody has moved its clock: that is no one's
-- death. Whoever comes first afterwards grants everybody one more lease, counted from now. Whether all were told.
local function feel_pulse(now)
  local at, shortest, round = read_pulse(now)
  local silence = now - at
  if silence < -SET_BACK then shorten_office(now) end
  if silence > shortest / 2 or silence < -SET_BACK then
    round = {at = now, silence = silence, shortest = NEVER, cursor = '0'}
  end
  local told = shortest
  if round then round, told = tell_some(round, now) end
  write_pulse(now, round and shortest or told, round)
  return not round
end

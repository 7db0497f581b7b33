-- lease_activity: global leases, and the grace that all of them get after a silence, in which none was renewed. As
-- there may be very many, every call that checks for silence grants a portion, and no runner counts as dead until all
-- leases have their grace.
local LEASE, LEASE_SIZE = '>i8i8B', 17
local ACTIVITY_FIELD = ''
-- `at`: the last renewal, or the end of the last silence. `shortest`: the length of the shortest lease. `seen`: the last
-- check for lapsed leases, while leases are in their grace. `graced_until`: until when they may be.
local ACTIVITY = '>i8i8i8i8'
-- A round of graces. `at`: when it began. `unrenewed`, `unreached`: how long no lease was renewed, and no call came.
-- `shortest`: the shortest length of the leases so far.
local GRACE_ROUND = '>i8i8i8i8'
local PORTION = 100
local NEVER = 2 ^ 52
local SET_BACK = 1000000
-- As in core/grace.py.
local MAX_GRACES, MIN_OUTAGE = 10, 1000000

-- The activity, with the round of graces that is under way (nil: none).
local function read_activity(now)
  local value = redis.call('HGET', K.leases, ACTIVITY_FIELD)
  if not value then return {at = now, shortest = NEVER, seen = now, graced_until = 0} end
  local activity, grace_round, size = {}, {}, 0
  activity.at, activity.shortest, activity.seen, activity.graced_until, size = struct.unpack(ACTIVITY, value)
  if #value < size then return activity end
  grace_round.at, grace_round.unrenewed, grace_round.unreached, grace_round.shortest, size = struct.unpack(GRACE_ROUND, value, size)
  grace_round.cursor = string.sub(value, size)
  activity.grace_round = grace_round
  return activity
end

local function write_activity(activity)
  local value = struct.pack(ACTIVITY, activity.at, activity.shortest, activity.seen, activity.graced_until)
  local grace_round = activity.grace_round
  if grace_round then
    value = value .. struct.pack(GRACE_ROUND, grace_round.at, grace_round.unrenewed, grace_round.unreached, grace_round.shortest) .. grace_round.cursor
  end
  redis.call('HSET', K.leases, ACTIVITY_FIELD, value)
end

-- As gets_grace in core/grace.py.
local function gets_grace(graces, length, unrenewed, unreached)
  if graces == 0 then return unrenewed > length / 2 end
  return graces < MAX_GRACES and unreached > math.max(length / 2, MIN_OUTAGE)
end

-- Extend a lease of a runner that may have been alive during the silence. If the clock was set back, shorten a lease
-- that ends far ahead. Returns whether it changed.
local function apply_grace(lease, grace_round, now)
  if lease.expires > now + lease.length then
    lease.expires = now + lease.length
    return true
  end
  local since = lease.expires - lease.length
  if since >= grace_round.at then return false end
  if not gets_grace(lease.graces, lease.length, grace_round.unrenewed, grace_round.unreached) then return false end
  lease.expires, lease.graces = math.max(lease.expires, now + lease.length), lease.graces + 1
  return true
end

local function lease_of(value)
  local lease = {}
  lease.expires, lease.length, lease.graces = struct.unpack(LEASE, value)
  lease.worker = string.sub(value, LEASE_SIZE + 1)
  return lease
end

-- The lease, with the grace of a round that is under way.
local function read_lease(runner, now)
  local value = redis.call('HGET', K.leases, runner)
  if not value then return nil end
  local lease = lease_of(value)
  local grace_round = read_activity(now).grace_round
  if grace_round then apply_grace(lease, grace_round, now) end
  return lease
end

local function write_lease(runner, lease)
  redis.call('HSET', K.leases, runner, struct.pack(LEASE, lease.expires, lease.length, lease.graces) .. lease.worker)
  redis.call('ZADD', K.lease_ends, lease.expires, runner)
end

-- Note the length of a lease: the shortest decides how long a silence must be.
local function note_length(length, now)
  local activity = read_activity(now)
  local grace_round = activity.grace_round
  if grace_round then grace_round.shortest = math.min(grace_round.shortest, length) end
  if length < activity.shortest or grace_round then
    activity.shortest = math.min(activity.shortest, length)
    write_activity(activity)
  end
end

-- Note that a lease was renewed.
local function note_renewal(now)
  local activity = read_activity(now)
  activity.at = now
  write_activity(activity)
end

local function drop_lease(runner)
  redis.call('HDEL', K.leases, runner)
  redis.call('ZREM', K.lease_ends, runner)
end

-- Grant some more graces. After the last one the round is over, and the shortest lease is known.
local function apply_grace_to_some(activity, now)
  local grace_round = activity.grace_round
  local cursor, found = unpack(redis.call('HSCAN', K.leases, grace_round.cursor, 'COUNT', PORTION))
  for i = 1, #found, 2 do
    if found[i] ~= ACTIVITY_FIELD then
      local lease = lease_of(found[i + 1])
      grace_round.shortest = math.min(grace_round.shortest, lease.length)
      if apply_grace(lease, grace_round, now) then
        write_lease(found[i], lease)
        if grace_round.unrenewed > 0 then activity.graced_until = math.max(activity.graced_until, lease.expires) end
      end
    end
  end
  grace_round.cursor = cursor
  if cursor == '0' then activity.grace_round, activity.shortest = nil, grace_round.shortest end
end

-- If the clock was set back, the leadership would last too long.
local function shorten_leadership(now)
  if (tonumber(redis.call('HGET', K.leadership, 'expires')) or 0) > now then redis.call('HSET', K.leadership, 'expires', now) end
end

local function reached_at(activity)
  return math.max(activity.at, activity.seen)
end

-- If no lease was renewed for half a lease, the server was unreachable or its clock moved: that does not show that
-- runners are dead. The first call afterwards grants every lease one more length from now. Returns whether all have it.
local function check_silence(now)
  local activity = read_activity(now)
  local silence, unreached = now - activity.at, now - reached_at(activity)
  if silence < -SET_BACK then
    shorten_leadership(now)
    activity.graced_until = now
  end
  if silence > activity.shortest / 2 or silence < -SET_BACK then
    activity.at, activity.seen = now, now
    activity.grace_round = {at = now, unrenewed = silence, unreached = unreached, shortest = NEVER, cursor = '0'}
  end
  if activity.grace_round then apply_grace_to_some(activity, now) end
  write_activity(activity)
  return not activity.grace_round
end

-- Note a check for lapsed leases; `any`: whether there are some. Graces are granted first, so that this check does not
-- hide the silence. Returns whether all leases have theirs.
local function note_lapse_check(any, now)
  local activity = read_activity(now)
  local graced = now <= activity.graced_until
  local all_graced = not any and not (graced and now - reached_at(activity) > MIN_OUTAGE) or check_silence(now)
  if graced then
    activity = read_activity(now)
    activity.seen = now
    write_activity(activity)
  end
  return all_graced
end

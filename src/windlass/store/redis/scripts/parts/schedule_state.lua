-- schedule_state: the state of a schedule: stamp, revision, next tick (-1: none), creation time, last tick,
-- missed, skipped, paused, last job (read_schedules.py). A stamp is new with every write; all stamps are different
-- and grow, whatever the clock does. The number of a plan is a stamp too.
local PAUSED_AT = 57

local function read_state(value)
  local stamp, revision, next_, made, last = struct.unpack('>I8i8i8i8i8', value)
  return {stamp = stamp, revision = revision, next = next_, made = made, last = last, paused = string.byte(value, PAUSED_AT) == 1}
end

-- The first of `count` new stamps.
local function new_stamps(count, now)
  local first = math.max((tonumber(redis.call('HGET', K.meta, 'stamp')) or 0) + 1, now)
  redis.call('HSET', K.meta, 'stamp', first + count - 1)
  return first
end

-- What each of these has in a hash: the first word of each request is a name.
local function named(key)
  local names = {}
  for i, each in ipairs(request) do names[i] = each[1] end
  return redis.call('HMGET', key, unpack(names))
end

-- Write states: name, what follows the stamp, and the next tick unless there is none.
local function write_states(entries, now)
  if #entries == 0 then return end
  local stamp = new_stamps(#entries, now)
  local states, ticking, still = {}, {}, {}
  for i, entry in ipairs(entries) do
    local name, body, tick = entry[1], entry[2], entry[3]
    states[2 * i - 1], states[2 * i] = name, struct.pack('>I8', stamp + i - 1) .. body
    if tick then
      ticking[#ticking + 1] = tick
      ticking[#ticking + 1] = name
    else
      still[#still + 1] = name
    end
  end
  redis.call('HSET', K.schedule_states, unpack(states))
  if #ticking > 0 then redis.call('ZADD', K.next_ticks, unpack(ticking)) end
  if #still > 0 then redis.call('ZREM', K.next_ticks, unpack(still)) end
end

-- schedule_state: the state of a schedule: stamp, revision, next tick (-1: none), creation time, last tick,
-- missed, skipped, paused, last job (read_schedules.py). Every write has a new stamp; stamps are unique and grow,
-- whatever the clock does. The number of a plan is a stamp too.
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

-- The values of a hash for the names in the request, each the first word of an entry.
local function values_by_name(key)
  local names = {}
  for i, each in ipairs(request) do names[i] = each[1] end
  return redis.call('HMGET', key, unpack(names))
end

-- Write states: {name, what follows the stamp, next tick (nil: none)} of each.
local function write_states(entries, now)
  if #entries == 0 then return end
  local stamp = new_stamps(#entries, now)
  local states, with_tick, without_tick = {}, {}, {}
  for i, entry in ipairs(entries) do
    local name, body, tick = entry[1], entry[2], entry[3]
    states[2 * i - 1], states[2 * i] = name, struct.pack('>I8', stamp + i - 1) .. body
    if tick then
      with_tick[#with_tick + 1] = tick
      with_tick[#with_tick + 1] = name
    else
      without_tick[#without_tick + 1] = name
    end
  end
  redis.call('HSET', K.schedule_states, unpack(states))
  if #with_tick > 0 then redis.call('ZADD', K.next_ticks, unpack(with_tick)) end
  if #without_tick > 0 then redis.call('ZREM', K.next_ticks, unpack(without_tick)) end
end

-- pass: parents that have just completed let those go on who wait for them, in the same call. Most have one child each, of
-- this queue, which waits for nothing else: all of those are written together.
-- uses: record, index, heirs
-- keys: jobs counts ready pend wake heirs
local MOST_CHILDREN = 10

local any_awake

-- Who waits for it, by member of `heirs`; nil, if they are many, or not told yet what happened to it before.
local function few_heirs(parent)
  if any_awake == nil then any_awake = redis.call('EXISTS', K.wake) == 1 end
  local members = heirs_of(WAITING, parent, MOST_CHILDREN + 1)
  if #members > MOST_CHILDREN or any_awake and redis.call('HEXISTS', K.wake, parent) == 1 then return nil end
  return members
end

-- What of HEAD_B a child that goes on changes, and how long that is.
local PLACE, PLACE_SIZE = '>I2I4i4I2i8i8', 28

-- A child that waits for this parent alone, and for nothing else: its record, as it is due now, and the beginning of its
-- place in `ready`. Nothing, if it is not like that. Only what changes is read.
local function made_due(value, parent, result, now)
  local letter, version, attempt, claim, _, claimed, started, length = struct.unpack(HEAD_A, value)
  local at = A_SIZE + length
  local flags, type, urgency, lifted, delay, run_at = struct.unpack(PLACE, value, at + 1)
  if letter ~= BLOCKED or bit.band(flags, LINED + WAITS + LONE + INPUT) ~= WAITS + LONE then return nil end
  if delay > 0 or run_at > now or fair() then return nil end
  local input = ''
  flags = flags - WAITS
  if has(flags, TAKER) then
    flags = flags + INPUT
    input = '[["' .. parent .. '",' .. (result ~= '' and cjson.encode(result) or 'null') .. ']]'
    input = struct.pack('>I4', #input) .. input
  end
  local record = struct.pack(HEAD_A, PENDING, version + 1, attempt, claim, now, claimed, started, length)
    .. string.sub(value, A_SIZE + 1, at) .. struct.pack(PLACE, flags, type, urgency, lifted, now, now)
    .. string.sub(value, at + PLACE_SIZE + 1) .. input
  return record, struct.pack('>I4I2I8', type, urgency + LEVEL, now), type
end

local function write_due(records, ready, by_type)
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ready, unpack(ready))
  bump(BLOCKED, -#records / 2)
  bump(PENDING, #records / 2)
  for type, jobs in pairs(by_type) do
    if redis.call('HINCRBY', K.pend, type, jobs) == jobs then announce() end
  end
end

-- `gifts` are members of `heirs` and the result of the parent, by turns. What goes to other queues is in work.sent then.
local function pass_on(gifts, work)
  local members, ids, records, ready, by_type = {}, {}, {}, {}, {}
  for i = 1, #gifts, 2 do
    members[#members + 1] = gifts[i]
    ids[#ids + 1] = string.sub(gifts[i], 38, 73)
  end
  redis.call('ZREM', K.heirs, unpack(members))
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    local member, result, id = members[i], gifts[2 * i], ids[i]
    local record, place, type
    if value and #member == 73 then record, place, type = made_due(value, string.sub(member, 2, 37), result, work.now) end
    if record then
      local n = #records
      records[n + 1], records[n + 2] = id, record
      ready[n + 1], ready[n + 2] = 0, place .. id
      by_type[type] = (by_type[type] or 0) + 1
    else
      tell_heir(member, COMPLETED, result, work)
    end
  end
  if #records > 0 then write_due(records, ready, by_type) end
end

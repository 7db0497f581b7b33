-- age: move jobs that have waited long up to the next higher priority with pending jobs; they keep their rank, and
-- the public priority stays. Priorities are visited from the highest down, so no job moves twice. Request: the
-- maximum, and where the last call stopped: after which sort_priority, and to which the next jobs move (-32768: none).
-- Reply: how many moved, and where to continue; only the number if all is done.
--! effect: writes
--! uses: record, indexes, merged_stream
local now = now_micros()
local ageing = tonumber(redis.call('HGET', K.queue, 'ageing'))
if not ageing then return {0} end
local NONE, MAX_LEVELS, HEAD, MAX_LOOKED, MAX_TEXT = -32768, 50, 500, 500, 1000000
local left, after, above = unpack(request, 1, 3)
local moved, looked, text = 0, 0, 0

-- The next sort_priority after `last` at which a type has pending jobs, or nil.
local function next_priority(type, last)
  local from = '[' .. struct.pack('>I4', type)
  if last > NONE then from = '(' .. struct.pack('>I4I2', type, last + LEVEL) .. '\255\255\255' end
  local member = redis.call('ZRANGEBYLEX', K.ready, from, '(' .. struct.pack('>I4', type + 1), 'LIMIT', 0, 1)[1]
  return member and struct.unpack('>I2', member, 5) - LEVEL
end

-- By type with pending jobs: the first sort_priority to visit.
local function heads()
  local found = {}
  for _, type in ipairs(pending_types()) do found[type] = next_priority(type, after) end
  return found
end

-- The prefixes in `ready` of jobs at one sort_priority, for each type that has any.
local function prefixes_at(types, sort_priority)
  local found = {}
  for type, at in pairs(types) do
    if at == sort_priority then found[#found + 1] = struct.pack('>I4I2', type, sort_priority + LEVEL) end
  end
  return found
end

local function lift(id, r)
  remove_from_indexes(id, r)
  r.aged_by, r.sort_priority = r.aged_by + r.sort_priority - above, above
  r.version, r.updated = r.version + 1, now
  redis.call('HSET', K.jobs, id, write_record(r))
  add_to_indexes(id, r)
end

-- Lift the jobs that have waited longest. A job that was changed or aged lately waits anew, though its rank is old.
local function lift_aged(heads)
  local next_one = stream(K.ready, heads, math.ceil(2 * left / #heads) + 1)
  for _ = 1, HEAD do
    local rest = left > 0 and next_one()
    if not rest or struct.unpack('>I8', rest) > now - ageing then return end
    looked = looked + 1
    local id = string.sub(rest, 9)
    local value = redis.call('HGET', K.jobs, id)
    local updated = value and string.byte(value) == PENDING and select(5, struct.unpack(HEAD_A, value))
    if updated and updated <= now - ageing then
      lift(id, read_record(value))
      moved, left, text = moved + 1, left - 1, text + #value
      if text > MAX_TEXT then left = 0 end  -- enough text for one call
    end
  end
end

local types = heads()
for _ = 1, MAX_LEVELS do
  local sort_priority
  for _, at in pairs(types) do
    if not sort_priority or at < sort_priority then sort_priority = at end
  end
  if not sort_priority then return {moved} end
  if above > NONE then lift_aged(prefixes_at(types, sort_priority)) end
  if left == 0 then return {moved, after, above} end
  local remains = false
  for type, at in pairs(types) do
    if at == sort_priority then
      remains = remains or next_priority(type, sort_priority - 1) == sort_priority
      types[type] = next_priority(type, sort_priority)
    end
  end
  if remains then above = sort_priority end
  after = sort_priority
  if looked >= MAX_LOOKED then break end
end
return {moved, after, above}

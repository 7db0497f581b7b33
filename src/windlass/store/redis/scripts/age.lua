-- age: who has waited long moves up to the next higher priority at which jobs are pending, at the rank they have; the
-- priority that people see stays. It goes from the highest priority downwards, so nobody moves twice, and each priority
-- is done before the next is looked at. The request is how many jobs at most, and where the call before stopped: after
-- which urgency, and to which the next ones move (-32768: there is none). The answer is how many moved, and where to go
-- on; nothing after the first number if all is done.
-- uses: call, record, index, stream
-- keys: queue jobs ready pend
local problem = strange()
if problem then return problem end
local now = the_time()
local ageing = tonumber(redis.call('HGET', K.queue, 'ageing'))
if not ageing then return {0} end
local NONE, MOST_LEVELS, HEAD, MOST_LOOKED = -32768, 50, 500, 500
local left, after, above = unpack(request, 1, 3)
local moved, looked = 0, 0

-- The urgency of the first pending job of a type that is less urgent than `last`, or nil.
local function next_urgency(type, last)
  local from = '[' .. struct.pack('>I4', type)
  if last > NONE then from = '(' .. struct.pack('>I4I2', type, last + LEVEL) .. '\255\255\255' end
  local member = redis.call('ZRANGEBYLEX', K.ready, from, '(' .. struct.pack('>I4', type + 1), 'LIMIT', 0, 1)[1]
  return member and struct.unpack('>I2', member, 5) - LEVEL
end

-- Each type that has pending jobs, and the next urgency at which it has any.
local function heads()
  local found, counted = {}, redis.call('HGETALL', K.pend)
  for i = 1, #counted, 2 do
    if tonumber(counted[i + 1]) > 0 then
      local type = tonumber(counted[i])
      found[type] = next_urgency(type, after)
    end
  end
  return found
end

-- How the places of jobs at one urgency begin, of each type that has any.
local function stretches(types, urgency)
  local found = {}
  for type, at in pairs(types) do
    if at == urgency then found[#found + 1] = struct.pack('>I4I2', type, urgency + LEVEL) end
  end
  return found
end

local function lift(id, r)
  leave_places(id, r)
  r.lifted, r.urgency = r.lifted + r.urgency - above, above
  r.version, r.updated = r.version + 1, now
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
end

-- Those who wait longest are in front; who was changed or lifted lately waits again, though its rank is old.
local function lift_aged(heads)
  local next_one = stream(K.ready, heads, math.ceil(2 * left / #heads) + 1)
  for _ = 1, HEAD do
    local place = left > 0 and next_one()
    if not place or struct.unpack('>I8', place) > now - ageing then return end
    looked = looked + 1
    local id = string.sub(place, 9)
    local value = redis.call('HGET', K.jobs, id)
    local _, _, _, _, updated = struct.unpack(HEAD_A, value)
    if updated <= now - ageing then
      lift(id, read_record(value))
      moved, left = moved + 1, left - 1
    end
  end
end

local types = heads()
for _ = 1, MOST_LEVELS do
  local urgency
  for _, at in pairs(types) do
    if not urgency or at < urgency then urgency = at end
  end
  if not urgency then return {moved} end
  if above > NONE then lift_aged(stretches(types, urgency)) end
  if left == 0 then return {moved, after, above} end
  local remains = false
  for type, at in pairs(types) do
    if at == urgency then
      remains = remains or next_urgency(type, urgency - 1) == urgency
      types[type] = next_urgency(type, urgency)
    end
  end
  if remains then above = urgency end
  after = urgency
  if looked >= MOST_LOOKED then break end
end
return {moved, after, above}

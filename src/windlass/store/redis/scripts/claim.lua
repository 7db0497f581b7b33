-- claim: hold pending jobs of this queue for a runner, best first. Asking again with the same number gives the same jobs.
-- The request is runner, claim, types, limit.
-- uses: call, record, index, lease
-- keys: queue counts jobs types ready pend lanes held left leases expiring
local problem = strange()
if problem then return problem end
local now = the_time()
local runner, claim, types, limit = unpack(request, 1, 4)
if not has_lease(runner, now) then return NO_LEASE end
local field = runner .. ':' .. string.format('%.0f', claim)

local before = redis.call('HGET', K.held, field)
if before then
  local answer = {}
  for at = 1, #before, 36 do
    local id = string.sub(before, at, at + 35)
    local value = redis.call('HGET', K.jobs, id)
    if value then
      local r = read_record(value)
      if r.letter == RUNNING and r.runner == runner and r.claim == claim then
        answer[#answer + 1] = id
        answer[#answer + 1] = value
      end
    end
  end
  return answer
end

-- The best of several types: each has its own line, and they are merged by urgency, rank and id.
local function best(numbers, most)
  local found = {}
  for _, number in ipairs(numbers) do
    local head = struct.pack('>I4', number)
    local members = redis.call('ZRANGEBYLEX', K.ready, '[' .. head, '(' .. struct.pack('>I4', number + 1), 'LIMIT', 0, most)
    if #numbers == 1 then return members end
    for _, member in ipairs(members) do found[#found + 1] = member end
  end
  table.sort(found, function(a, b) return string.sub(a, 5) < string.sub(b, 5) end)
  for i = #found, most + 1, -1 do found[i] = nil end
  return found
end

local function present_types()
  local numbers = {}
  for i, number in ipairs(redis.call('HMGET', K.types, unpack(types))) do
    if number and (tonumber(redis.call('HGET', K.pend, number)) or 0) > 0 then numbers[#numbers + 1] = tonumber(number) end
  end
  return numbers
end

local function take(members)
  local ids = {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, 15) end
  local values = redis.call('HMGET', K.jobs, unpack(ids))
  local answer, by_type = {}, {}
  for i, id in ipairs(ids) do
    local value = values[i]
    local letter, version, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
    local taken = struct.pack(HEAD_A, RUNNING, version + 1, attempt + 1, claim, now, now, 0, #runner)
      .. runner .. string.sub(value, A_SIZE + length + 1)
    answer[2 * i - 1], answer[2 * i] = id, taken
    local type = string.sub(members[i], 1, 4)
    by_type[type] = (by_type[type] or 0) + 1
  end
  redis.call('ZREM', K.ready, unpack(members))
  redis.call('HSET', K.jobs, unpack(answer))
  for type, jobs in pairs(by_type) do redis.call('HINCRBY', K.pend, struct.unpack('>I4', type), -jobs) end
  bump(PENDING, -#ids)
  bump(RUNNING, #ids)
  redis.call('HSET', K.held, field, table.concat(ids))
  redis.call('HSET', K.left, field, #ids)
  return answer
end

local numbers = present_types()
if #numbers == 0 then return {} end
local members = best(numbers, limit)
if #members == 0 then return {} end
return take(members)

-- park: set pending jobs of types aside that no live worker knows. Their slots are free, but for strict order. The
-- request is types, and how many jobs at most. The answer is how many jobs of each type.
-- uses: call, record, index, line
-- keys: queue jobs types ready
local problem = strange()
if problem then return problem end
local now = the_time()
local types, left = unpack(request, 1, 2)
local lines, answer = {}, {}

local function set_aside(id)
  local r = read_record(redis.call('HGET', K.jobs, id))
  leave_places(id, r)
  if r.slot >= 0 and not has(r.flags, STRICT) then
    r.slot = -1
    at_line(lines, r)
  end
  r.letter, r.version, r.updated = PARKED, r.version + 1, now
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
end

for i, name in ipairs(types) do
  local number = tonumber(redis.call('HGET', K.types, name))
  local from, to = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  local members = redis.call('ZRANGEBYLEX', K.ready, from, to, 'LIMIT', 0, left)
  for _, member in ipairs(members) do set_aside(string.sub(member, 15)) end
  answer[i] = #members
  left = left - #members
end
move_up(lines, now)
return answer

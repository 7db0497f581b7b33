-- unpark: a worker knows these types: their jobs are pending again at their old rank, or, with a key and no slot, in its
-- line. The request is types, and how many jobs at most. The answer is how many jobs.
-- uses: call, record, index, line
-- keys: queue jobs types parked
local problem = strange()
if problem then return problem end
local now = the_time()
local types, most = unpack(request, 1, 2)
local lines, freed = {}, 0

local function take_back(id)
  local r = read_record(redis.call('HGET', K.jobs, id))
  leave_places(id, r)
  r.letter, r.version, r.updated = PENDING, r.version + 1, now
  if has(r.flags, LINED) and r.slot < 0 then
    r.letter = IN_LINE
    at_line(lines, r)
  end
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
end

for _, name in ipairs(types) do
  local number = tonumber(redis.call('HGET', K.types, name))
  local from, to = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  local members = redis.call('ZRANGEBYLEX', K.parked, from, to, 'LIMIT', 0, most - freed)
  for _, member in ipairs(members) do take_back(string.sub(member, 13)) end
  freed = freed + #members
end
move_up(lines, now)
return freed

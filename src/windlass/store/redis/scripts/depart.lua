-- depart: waiting jobs leave for another queue. Until they have come there (`departed`) all of them is in `leaving`, so
-- that anybody can finish it. The request is the target, and {id, version} of each; blobs are, for each, the record as
-- it shall be there and its `more` (empty: none). The answer for each: 0 if it has changed since it was read; else
-- {target, record, more, notes}, as `arrive` wants it.
-- uses: call, record, index, place, line, ends
-- keys: queue jobs more notes ids children leaving asking
local problem = strange()
if problem then return problem end
local now, target = the_time(), request[1]
local lines, answer = {}, {}

local function leave(id, version, record, more)
  local value = redis.call('HGET', K.jobs, id)
  local before = value and read_record(value)
  if not before or before.version ~= version or not waiting_letters[before.letter] then return 0 end
  local r = read_record(record)
  r.version = version + 1
  at_its_line(lines, before)
  leave_places(id, before)
  local packet = {target, write_record(r), more, redis.call('HGET', K.notes, id) or ''}
  redis.call('HSET', K.leaving, id, cmsgpack.pack({now, packet}))
  redis.call('HDEL', K.jobs, id)
  redis.call('HDEL', K.more, id)
  redis.call('HDEL', K.notes, id)
  redis.call('ZREM', K.ids, id)
  if has(before.flags, WAITS) then redis.call('ZREM', K.asking, id) end
  if has(before.flags, CHILD) then redis.call('ZREM', K.children, fields_of(before)[PARENT] .. id) end
  if awaited() then tell_ends({[id] = true}) end
  return packet
end

for i, entry in ipairs(request[2]) do
  answer[i] = leave(entry[1], entry[2], ARGV[2 + 2 * i], ARGV[3 + 2 * i])
end
move_up(lines, now)
return answer

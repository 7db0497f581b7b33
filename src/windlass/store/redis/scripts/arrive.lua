-- arrive: jobs come from another queue; one that has come already is left alone. The request is their ids; blobs are, for
-- each, record, `more` and notes (empty: none). The answer for each: the letter that it has here, 0 if it was here and
-- is gone.
-- A mover may come late, after somebody else finished for it, and the job may have gone on to a third queue: what it
-- left here tells its version, and versions only grow. One that waits for parents asks for them anew, from here.
-- uses: call, record, index, hold, line, types, moved
-- keys: queue jobs more notes ids children tombs buried asking
local problem = strange()
if problem then return problem end
local now, lines, answer = the_time(), {}, {}

local function was_here(id, r)
  local tomb = redis.call('HGET', K.tombs, id)
  if not tomb then return false end
  local version, ends = moved_version(tomb), tonumber(redis.call('ZSCORE', K.buried, id) or 0)
  if ends > now and (not version or version >= r.version) then return true end
  redis.call('HDEL', K.tombs, id)
  redis.call('ZREM', K.buried, id)
  return false
end

local function arrive(id, record, more, notes)
  local here = redis.call('HGET', K.jobs, id)
  if here then return string.byte(here) end
  local r = read_record(record)
  if was_here(id, r) then return 0 end
  r.type = number_of(fields_of(r)[TYPE])
  -- It was reserved. If that took so long that another one has it, the job is here without it: it must be somewhere.
  if has(r.flags, KEYED) then take_key(id, fields_of(r)[KEY_DIGEST], now) end
  redis.call('HSET', K.jobs, id, write_record(r))
  redis.call('ZADD', K.ids, 0, id)
  if more ~= '' then redis.call('HSET', K.more, id, more) end
  if notes ~= '' then redis.call('HSET', K.notes, id, notes) end
  if has(r.flags, CHILD) then redis.call('ZADD', K.children, 0, fields_of(r)[PARENT] .. id) end
  enter_places(id, r)
  if has(r.flags, WAITS) then redis.call('ZADD', K.asking, now, id) end
  if r.letter == IN_LINE then at_line(lines, r) end
  return r.letter
end

for i, id in ipairs(request) do
  local at = 1 + 3 * i
  answer[i] = arrive(id, ARGV[at], ARGV[at + 1], ARGV[at + 2])
end
local went = move_up(lines, now)
for i, id in ipairs(request) do
  if went[id] and answer[i] == IN_LINE then answer[i] = PENDING end
end
return answer

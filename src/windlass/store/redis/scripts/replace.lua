-- replace: put decided records in the place of those that they were decided from, each on its own. The request is a list
-- of {id, version, more}: the version that was read, and what becomes of `more` (0 as it is, 1 given, 2 none).
-- Blobs: for each, the record, then `more` if it is given. Answers for each with the letter that it has now; 0 if it
-- has changed since, or is gone; the id of another job if it would live again, and that one has its idempotency key.
-- One that goes back to wait for its parents asks for them.
-- uses: call, record, index, place, hold, line, room
-- keys: queue counts jobs more asking
local problem = strange()
if problem then return problem end
local now = the_time()
local lines, answer, stopped = {}, {}, 0

local function put(entry, record, more)
  local id, version = entry[1], entry[2]
  local value = redis.call('HGET', K.jobs, id)
  local before = value and read_record(value)
  if not before or before.version ~= version then return 0 end
  local r = read_record(record)
  if has(r.flags, KEYED) and finished_letters[before.letter] and not finished_letters[r.letter] then
    local holder = take_key(id, fields_of(r)[KEY_DIGEST], now)
    if holder then return holder end
  end
  if more then
    redis.call('HSET', K.more, id, more)
  elseif entry[3] == 2 then
    redis.call('HDEL', K.more, id)
  end
  if r.letter == BLOCKED and finished_letters[before.letter] then redis.call('ZADD', K.asking, now, id) end
  put_record(id, before, r, now, lines)
  if before.letter == RUNNING and r.letter ~= RUNNING then stopped = stopped + 1 end
  return r.letter
end

local at = 4
for i, entry in ipairs(request) do
  local record, more = ARGV[at], entry[3] == 1 and ARGV[at + 1]
  at = at + (more and 2 or 1)
  answer[i] = put(entry, record, more)
end
local went = move_up(lines, now)
for i, entry in ipairs(request) do
  if went[entry[1]] and answer[i] == IN_LINE then answer[i] = PENDING end
end
made_room(stopped)
return answer

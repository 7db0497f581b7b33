-- complete: attempts that ended well. The request is lists of ids, attempts, moments from claim to start (-1: it never
-- started) and results (empty: none). The answer has a number for each: 1 if it is done; 0 if it does not run so.
-- uses: call, record, index, keep, more, place, line, room
-- rarely: put_record read_more write_more move_up
-- keys: queue counts jobs more ended held left
local problem = strange()
if problem then return problem end
local now = the_time()
local ids, attempts, starts, results = unpack(request, 1, 4)
local keep = keep_of(COMPLETED)
local values = redis.call('HMGET', K.jobs, unpack(ids))
local records, ended, answer, claims, lines, seen = {}, {}, {}, {}, {}, {}
local plain, unusual = 0, 0
local UNUSUAL = KEYED + LINED + CANCELLING + MORE

-- Most are like this: what changes is the head, and all of them are written together.
local function add_plain(i, value)
  local _, version, attempt, claim, _, claimed, started, length = struct.unpack(HEAD_A, value)
  plain = plain + 1
  if starts[i] >= 0 then started = claimed + starts[i] end
  records[2 * plain - 1] = ids[i]
  records[2 * plain] = struct.pack(HEAD_A, COMPLETED, version + 1, attempt, claim, now, claimed, started, length)
    .. string.sub(value, A_SIZE + 1) .. results[i]
  ended[2 * plain - 1], ended[2 * plain] = now + keep, ids[i]
  local field = string.sub(value, A_SIZE + 1, A_SIZE + length) .. ':' .. string.format('%.0f', claim)
  claims[field] = (claims[field] or 0) + 1
end

-- It has a key, a slot, a history, or is not kept. Neither reason nor error outlives a good end.
local function put_unusual(i, value)
  local id, before, r = ids[i], read_record(value), read_record(value)
  unusual = unusual + 1
  r.letter, r.updated, r.slot = COMPLETED, now, -1
  if starts[i] >= 0 then r.started = r.claimed + starts[i] end
  r.tail = r.tail .. results[i]
  if has(r.flags, MORE) then write_more(id, r, {attempts = read_more(id, r).attempts}) end
  put_record(id, before, r, now, lines)
end

for i, id in ipairs(ids) do
  local value = values[i]
  answer[i] = 0
  if value and not seen[id] then  -- one that comes twice is done once
    local letter, _, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
    if letter == RUNNING and attempt == attempts[i] then
      answer[i], seen[id] = 1, true
      local flags = struct.unpack('>I2', value, A_SIZE + length + 1)
      if keep > 0 and bit.band(flags, UNUSUAL) == 0 then add_plain(i, value) else put_unusual(i, value) end
    end
  end
end
if plain > 0 then
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ended, unpack(ended))
  bump(RUNNING, -plain)
  bump(COMPLETED, plain)
end
for field, jobs in pairs(claims) do
  if redis.call('HINCRBY', K.left, field, -jobs) <= 0 then
    redis.call('HDEL', K.left, field)
    redis.call('HDEL', K.held, field)
  end
end
if unusual > 0 then move_up(lines, now) end
made_room(plain + unusual)
return answer

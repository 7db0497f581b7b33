-- heirs: who waits for a job of this queue. A member of `heirs` is a letter, the parent, the child, and the queue of that
-- (nothing: this one). The letter is WAITING; or FALLEN, if the child was told that the parent ended badly: it is told again
-- when that one lives again. What a child in another queue is told goes to `outbox`, until it was delivered.
-- uses: record, index, child, stir
-- keys: jobs heirs wake outbox asking leaving tombs
local WAITING, FALLEN = 'w', 'f'

-- Whether a job that is not here was moved, or is just on its way.
local function is_elsewhere(id)
  if redis.call('HEXISTS', K.leaving, id) == 1 then return true end
  local tomb = redis.call('HGET', K.tombs, id)
  return tomb and string.sub(tomb, 1, 1) == '>'
end

local function heirs_of(state, parent, most)
  local head = state .. parent
  return redis.call('ZRANGEBYLEX', K.heirs, '[' .. head, '(' .. head .. '\255', 'LIMIT', 0, most)
end

-- For a child in another queue. If the parent lives again it is asked how it is: letters may overtake each other.
local function send(child, parent, queue, letter, result, now, sent)
  if letter ~= COMPLETED and letter ~= DEAD and letter ~= CANCELLED then letter = MOVED end
  local field = child .. parent .. queue
  local before = redis.call('HGET', K.outbox, field)
  if before and string.byte(before, 9) == COMPLETED then return end
  local value = struct.pack('>I8', now) .. string.char(letter) .. result
  redis.call('HSET', K.outbox, field, value)
  sent[#sent + 1], sent[#sent + 2] = field, value
end

-- Whether there is such a child still.
local function tell_heir(member, letter, result, work)
  local parent, child, queue = string.sub(member, 2, 37), string.sub(member, 38, 73), string.sub(member, 74)
  local value = queue == '' and redis.call('HGET', K.jobs, child)
  if value and letter == MOVED then
    ask(child, work.now)
  elseif value then
    tell_child(child, value, parent, letter, result, work.now, work.lines)
  elseif queue ~= '' or is_elsewhere(child) then
    send(child, parent, queue, letter, result, work.now, work.sent)
  else
    return false
  end
  return true
end

-- Those of one state are told, and are in the state `after` then (nil: in none). Whether that were all of them.
local function tell_all(parent, state, letter, result, after, work)
  while work.left > 0 do
    local most = work.left
    local members = heirs_of(state, parent, most)
    for _, member in ipairs(members) do
      local is_there = tell_heir(member, letter, result, work)
      redis.call('ZREM', K.heirs, member)
      if after and is_there then redis.call('ZADD', K.heirs, 0, after .. string.sub(member, 2)) end
    end
    work.left = work.left - #members
    if #members < most then return true end
  end
  return false
end

-- All who wait for a parent, by what is in `wake` of it. Whether that were all of them.
local function tell(parent, value, work)
  local letter, result = string.byte(value), string.sub(value, 2)
  if letter == COMPLETED then
    return tell_all(parent, FALLEN, PENDING, '', WAITING, work) and tell_all(parent, WAITING, letter, result, nil, work)
  elseif letter == DEAD or letter == CANCELLED then
    return tell_all(parent, WAITING, letter, '', FALLEN, work)
  elseif letter == MOVED then
    return tell_all(parent, FALLEN, letter, '', nil, work) and tell_all(parent, WAITING, letter, '', nil, work)
  end
  return tell_all(parent, FALLEN, PENDING, '', WAITING, work)
end

-- It is gone: nobody need be told of it any more.
local function forget_heirs(parent, work)
  for _, state in ipairs({WAITING, FALLEN}) do
    local members = heirs_of(state, parent, work.left)
    if #members > 0 then redis.call('ZREM', K.heirs, unpack(members)) end
    work.left = work.left - #members
  end
  return work.left > 0
end

-- How a parent is, for a child that wants to wait for it: its letter, and its result if it completed. From here on the
-- child is told. Nothing: there is no such job here. No result: it has completed and is gone, and its result with it.
local function stand_by(parent, child, queue)
  local value = redis.call('HGET', K.jobs, parent)
  if not value then
    local tomb = redis.call('HGET', K.tombs, parent)
    if not tomb or string.sub(tomb, 1, 1) == '>' then return nil end
    if string.match(tomb, '^%d+ completed$') then return COMPLETED, nil end
    return CANCELLED, ''
  end
  local r = read_record(value)
  if r.letter == COMPLETED then return COMPLETED, result_of(r) end
  if not has(r.flags, HEIRS) then
    r.flags, r.version = r.flags + HEIRS, r.version + 1
    redis.call('HSET', K.jobs, parent, write_record(r))
  end
  local over, member = finished_letters[r.letter], parent .. child .. queue
  redis.call('ZREM', K.heirs, (over and WAITING or FALLEN) .. member)
  redis.call('ZADD', K.heirs, 0, (over and FALLEN or WAITING) .. member)
  return r.letter, ''
end

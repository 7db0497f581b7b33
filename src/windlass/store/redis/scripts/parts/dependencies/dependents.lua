-- dependents: jobs that wait for a job of this queue. A member of `dependents` is a state, the parent, the child,
-- and the child's queue (empty: this one). The state is WAITING, or PARENT_FAILED: the child was notified of a
-- failure, and is notified again if the parent becomes live. Notifications for other queues go to `outbox` until
-- they are delivered.
--! uses: record, indexes, child_state, parent_changes
local PARENT_FAILED = 'f'

-- Whether a job that is not here was moved, or is moving.
local function was_moved(id)
  if redis.call('HEXISTS', K.moving, id) == 1 then return true end
  local tombstone = redis.call('HGET', K.tombstones, id)
  return tombstone and string.sub(tombstone, 1, 1) == '>'
end

local function dependents_of(state, parent, max_count)
  local head = state .. parent
  return redis.call('ZRANGEBYLEX', K.dependents, '[' .. head, '(' .. head .. '\255', 'LIMIT', 0, max_count)
end

-- Put mail for a child in another queue into `outbox`. If the parent is live again, the child must register again, as
-- mail may arrive out of order.
local function send(child, parent, queue, letter, result, now, sent)
  if letter ~= COMPLETED and letter ~= DEAD and letter ~= CANCELLED then letter = MOVED end
  local field = child .. parent .. queue
  local before = redis.call('HGET', K.outbox, field)
  if before and string.byte(before, 9) == COMPLETED then return end
  local value = struct.pack('>I8', now) .. string.char(letter) .. result
  redis.call('HSET', K.outbox, field, value)
  sent[#sent + 1], sent[#sent + 2] = field, value
end

-- Count the bytes of result and record as work. In `complete` the caller counts them.
local TEXT = 4096
local function count_text(work, text)
  if work.left then work.left = work.left - math.floor(text / TEXT) end
end

-- Notify one dependent; returns whether it still exists.
local function notify_dependent(member, letter, result, work)
  local parent, child, queue = string.sub(member, 2, 37), string.sub(member, 38, 73), string.sub(member, 74)
  local value = queue == '' and redis.call('HGET', K.jobs, child)
  if value and letter == MOVED then
    request_parent_check(child, work.now)
  elseif value then
    count_text(work, #value + #result)
    apply_parent_state(child, value, parent, letter, result, work.now, work.dirty_keys)
  elseif queue ~= '' or was_moved(child) then
    send(child, parent, queue, letter, result, work.now, work.sent)
  else
    return false
  end
  return true
end

-- Notify dependents in one state, and put them into the state `after` (nil: remove). Returns whether these were all.
local function notify_state(parent, state, letter, result, after, work)
  while work.left > 0 do
    local max_count = work.left
    local members = dependents_of(state, parent, max_count)
    for _, member in ipairs(members) do
      if work.left <= 0 then return false end
      work.left = work.left - 1
      local is_there = notify_dependent(member, letter, result, work)
      redis.call('ZREM', K.dependents, member)
      if after and is_there then redis.call('ZADD', K.dependents, 0, after .. string.sub(member, 2)) end
    end
    if #members < max_count then return true end
  end
  return false
end

-- Notify the dependents of a parent, whose entry in `parent_changes` is `value`. Returns whether these were all.
local function notify_dependents(parent, value, work)
  local letter, result = string.byte(value), string.sub(value, 2)
  if letter == COMPLETED then
    return notify_state(parent, PARENT_FAILED, PENDING, '', WAITING, work) and notify_state(parent, WAITING, letter, result, nil, work)
  elseif letter == DEAD or letter == CANCELLED then
    return notify_state(parent, WAITING, letter, '', PARENT_FAILED, work)
  elseif letter == MOVED then
    return notify_state(parent, PARENT_FAILED, letter, '', nil, work) and notify_state(parent, WAITING, letter, '', nil, work)
  end
  return notify_state(parent, PARENT_FAILED, PENDING, '', WAITING, work)
end

-- Remove the dependents of a dropped parent, which need no more notifications. Returns whether these were all.
local function forget_dependents(parent, work)
  for _, state in ipairs({WAITING, PARENT_FAILED}) do
    local members = dependents_of(state, parent, work.left)
    if #members > 0 then redis.call('ZREM', K.dependents, unpack(members)) end
    work.left = work.left - #members
  end
  return work.left > 0
end

-- Register a child with a parent of this queue: it is notified from here on. Returns the parent's letter, and its
-- result if it completed (nil: dropped with the job). Nil: there is no such job here.
local function register_dependent(parent, child, queue)
  local value = redis.call('HGET', K.jobs, parent)
  if not value then
    local tombstone = redis.call('HGET', K.tombstones, parent)
    if not tombstone or string.sub(tombstone, 1, 1) == '>' then return nil end
    if string.match(tombstone, '^%d+ completed$') then return COMPLETED, nil end
    return CANCELLED, ''
  end
  local r = read_record(value)
  if r.letter == COMPLETED then return COMPLETED, result_of(r) end
  if not has(r.flags, HAS_DEPENDENTS) or has(r.flags, ONLY_DEPENDENT) then
    list_only_dependent(parent, r)
    r.flags, r.version = bit.bor(r.flags, HAS_DEPENDENTS), r.version + 1
    redis.call('HSET', K.jobs, parent, write_record(r))
  end
  local over, member = finished_letters[r.letter], parent .. child .. queue
  redis.call('ZREM', K.dependents, (over and WAITING or PARENT_FAILED) .. member)
  redis.call('ZADD', K.dependents, 0, (over and PARENT_FAILED or WAITING) .. member)
  return r.letter, ''
end

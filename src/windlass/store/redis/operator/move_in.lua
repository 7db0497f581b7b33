-- move_in: store jobs that come from another queue, each unless it was stored before. Request: ids; blobs: record,
-- details and notes (empty: none) of each. Reply for each: its letter here, 0 if it was here and is gone. A process
-- may be late, when another has finished the move and the job has moved on to a third queue: the tombstone has its
-- version, and versions only grow. A job that waits for parents registers with them again from here.
--! effect: writes
--! uses: record, indexes, idempotency_keys, key_queue, drop
local now, dirty_keys, answer = now_micros(), {}, {}

local function was_here(id, r)
  local tombstone = redis.call('HGET', K.tombstones, id)
  if not tombstone then return false end
  local version, ends = moved_version(tombstone), tonumber(redis.call('ZSCORE', K.tombstone_times, id) or 0)
  if ends > now and (not version or version >= r.version) then return true end
  redis.call('HDEL', K.tombstones, id)
  redis.call('ZREM', K.tombstone_times, id)
  return false
end

local function move_in(id, record, details, notes)
  local here = redis.call('HGET', K.jobs, id)
  if here then return string.byte(here) end
  local r = read_record(record)
  if was_here(id, r) then return 0 end
  r.type = type_number(fields_of(r)[TYPE])
  -- The key was reserved. If another job has it by now, the job is stored without it rather than lost.
  if has(r.flags, HAS_IDEMPOTENCY_KEY) then take_key(id, fields_of(r)[KEY_DIGEST], now) end
  redis.call('HSET', K.jobs, id, write_record(r))
  redis.call('ZADD', K.ids, 0, id)
  if details ~= '' then redis.call('HSET', K.details, id, details) end
  if notes ~= '' then redis.call('HSET', K.notes, id, notes) end
  if has(r.flags, IS_CHILD) then redis.call('ZADD', K.children, 0, fields_of(r)[PARENT] .. id) end
  add_to_indexes(id, r)
  if has(r.flags, WAITS_FOR_PARENTS) then redis.call('ZADD', K.parent_checks, now, id) end
  if r.letter == WAITING_FOR_KEY then mark_dirty(dirty_keys, r) end
  return r.letter
end

for i, id in ipairs(request) do
  local at = 1 + 3 * i
  answer[i] = move_in(id, ARGV[at], ARGV[at + 1], ARGV[at + 2])
end
local granted = assign_key_slots(dirty_keys, now)
for i, id in ipairs(request) do
  if granted[id] and answer[i] == WAITING_FOR_KEY then answer[i] = PENDING end
end
return answer

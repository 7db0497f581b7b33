-- move_out: remove waiting jobs that move to another queue. Until `move_done` they are in `moving`, so that any process
-- can finish the move. Request: target, and {id, version} of each; blobs: the new record and details (empty: none) of
-- each. Reply for each: 0 if it has changed; else {target, record, details, notes} for `move_in`.
--! effect: writes
--! uses: record, indexes, replace_record, key_queue, completion_hints, parent_changes
local now, target = now_micros(), request[1]
local dirty_keys, answer = {}, {}

local function move_out(id, version, record, details)
  local before = read_job(id)
  if not before or before.version ~= version or not waiting_letters[before.letter] then return 0 end
  local r = read_record(record)
  r.version = version + 1
  list_only_dependent(id, r)
  mark_dirty_if_key_slot(dirty_keys, before)
  remove_from_indexes(id, before)
  local packet = {target, write_record(r), details, redis.call('HGET', K.notes, id) or ''}
  redis.call('HSET', K.moving, id, cmsgpack.pack({now, packet}))
  redis.call('HDEL', K.jobs, id)
  redis.call('HDEL', K.details, id)
  redis.call('HDEL', K.notes, id)
  redis.call('ZREM', K.ids, id)
  if has(before.flags, WAITS_FOR_PARENTS) then redis.call('ZREM', K.parent_checks, id) end
  if has(before.flags, IS_CHILD) then redis.call('ZREM', K.children, fields_of(before)[PARENT] .. id) end
  if has_waiters() then publish_completions({[id] = true}) end
  return packet
end

for i, entry in ipairs(request[2]) do
  answer[i] = move_out(entry[1], entry[2], ARGV[2 + 2 * i], ARGV[3 + 2 * i])
end
assign_key_slots(dirty_keys, now)
return answer

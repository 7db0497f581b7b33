-- replace_record: replace a record and update its indexes, idempotency key and key slot; without retention the job is
-- dropped. The caller assigns the key slots of `dirty_keys` at its end. Waiters get a hint.
--! uses: record, indexes, idempotency_keys, drop, key_queue, parent_changes, completion_hints, details
-- The key is dirty only if the job has or had a key slot, or waits for it.
local function mark_dirty_if_key_slot(dirty_keys, r)
  if r.key_slot >= 0 or r.letter == WAITING_FOR_KEY then mark_dirty(dirty_keys, r) end
end

-- `details` must have been written: a tombstone needs the last attempt.
local function replace_record(id, before, r, now, dirty_keys)
  r.version = before.version + 1
  if before.letter == RUNNING and r.letter == RUNNING then
    redis.call('HSET', K.jobs, id, write_record(r))
    if has(r.flags, CANCEL_REQUESTED) then redis.call('SADD', K.cancels, id) end
    return
  end
  if before.key_slot ~= r.key_slot or r.letter == WAITING_FOR_KEY or before.letter == WAITING_FOR_KEY then
    mark_dirty_if_key_slot(dirty_keys, before)
    mark_dirty_if_key_slot(dirty_keys, r)
  end
  remove_from_indexes(id, before)
  local over = finished_letters[r.letter]
  if has(r.flags, HAS_DEPENDENTS) and over ~= finished_letters[before.letter] then
    list_only_dependent(id, r)
    note_parent_change(id, r)
  end
  if over and not finished_letters[before.letter] and has(r.flags, HAS_IDEMPOTENCY_KEY) then release_key(id, r, now) end
  if over and retention_of(r.letter) == 0 then
    forget_jobs({[id] = r}, now)
  else
    redis.call('HSET', K.jobs, id, write_record(r))
    add_to_indexes(id, r, over and r.updated + retention_of(r.letter))
  end
  if over and has_waiters() then publish_completions({[id] = true}) end
end

-- Cancel a waiting job: replaced, expired, or with a failed parent. The caller has checked that it waits, and assigns
-- the key slots of `dirty_keys` afterwards.
local function cancel_waiting(id, r, reason, now, dirty_keys)
  local before = {}
  for name, value in pairs(r) do before[name] = value end
  local details = read_details(id, r)
  details.reason = reason
  write_details(id, r, details)
  r.letter, r.updated, r.key_slot = CANCELLED, now, -1
  replace_record(id, before, r, now, dirty_keys)
end

-- complete: record successful attempts. Request: lists of ids, attempts, microseconds from claim to start (-1:
-- never started) and results (empty: none). Reply for each: 1: done; 0: it is not running this attempt; -1: not
-- looked at, because the others were enough for one call. Dependents are released; if they are too many for this call,
-- or in other queues, the reply continues as that of `notify_dependents`.
--! effect: writes
--! uses: record, indexes, details, idempotency_keys, drop, replace_record, key_queue, hint, release_dependents, completion_hints
--! lazy: replace_record, read_details, write_details, assign_key_slots, release_keys, forget_jobs, replace_with_tombstones, notify_dependent, note_parent_state, publish_completions
local now = now_micros()
local ids, attempts, starts, results = unpack(request, 1, 4)
local keep = retention_of(COMPLETED)
local drop_time = string.format('%.0f', now + keep)  -- a number would be formatted for each job
local values, PORTION = {}, 25
local answer, claims, dirty_keys, seen = {}, {}, {}, {}
local records, ended, key_slots, keyed, digests, unkept = {}, {}, {}, {}, {}, {}
local dropped, tombstones, tombstone_times = {}, {}, {}
local done, unusual, dependents = 0, 0, 0
local released, work = {}, {now = now, dirty_keys = dirty_keys, sent = {}}
local UNUSUAL = CANCEL_REQUESTED + HAS_DETAILS
local HAS_MORE = HAS_NOTES + IS_CHILD  -- the job has entries in other keys
local weight, MAX_WEIGHT, HEAVY, TEXT = 0, 300, 4, 4096  -- in plain jobs; one more for each TEXT bytes

-- End a job with an idempotency key or a key slot, or without retention.
local function finish_keyed(i, value, flags)
  local id, r = ids[i], read_record(value)
  r.flags = bit.band(flags, bit.bnot(HAS_HEAD_C))
  if has(r.flags, HAS_IDEMPOTENCY_KEY) then
    local fields = fields_of(r)
    keyed[#keyed + 1] = {id, fields[KEY_DIGEST], fields[WINDOW]}
    digests[#digests + 1] = fields[KEY_DIGEST]
  end
  if r.key_slot >= 0 then
    key_slots[#key_slots + 1] = key_slot_member(id, r)
    mark_dirty(dirty_keys, r)
    r.key_slot = -1
  end
  r.letter, r.version, r.updated = COMPLETED, r.version + 1, now
  if starts[i] >= 0 then r.started = r.claimed + starts[i] end
  r.tail = r.tail .. results[i]
  if keep == 0 then unkept[id] = r end
  return write_record(r)
end

-- For a job whose head C has nothing but a key slot: free the slot, and return what follows head A in its record, without
-- head C; nil for other jobs. Head B begins at `at`.
local NO_MORE = string.rep('\0', C_SIZE - 2)
local function without_key_slot(i, value, at, flags)
  if not has(flags, HAS_HEAD_C) then return nil end
  local head_c, fields_at = at + B_SIZE, at + B_SIZE + C_SIZE
  local key_slot = string.sub(value, head_c + KEY_SLOT_AT, head_c + KEY_SLOT_AT + 1)
  local others = string.sub(value, head_c, head_c + KEY_SLOT_AT - 1) .. string.sub(value, head_c + KEY_SLOT_AT + 2, fields_at - 1)
  if others ~= NO_MORE or string.byte(key_slot) > 127 then return nil end
  local digest = fields_in(value, fields_at, struct.unpack('>I4', value, head_c - 4))[CONCURRENCY_DIGEST]
  key_slots[#key_slots + 1] = digest .. key_slot .. ids[i]
  dirty_keys[digest] = true
  return struct.pack('>I4', flags - HAS_HEAD_C) .. string.sub(value, at + 4, head_c - 1) .. string.sub(value, fields_at)
end

local function release(child, parent, queue, result)
  local n = 4 * dependents
  dependents = dependents + 1
  released[n + 1], released[n + 2], released[n + 3], released[n + 4] = child, parent, queue, result
end

-- Release the dependents of a job with its result, or leave many of them to `notify_dependents`. Returns its flags,
-- without those of dependents if none is left. Head B begins at `at`.
local near, last  -- dependents of a portion of the jobs, and the number of its last job
local function pass_result(i, value, at, flags)
  local count, id = 1, ids[i]
  if has(flags, ONLY_DEPENDENT) then
    release(only_dependent(value, at, flags), id, '', results[i])
    flags = flags - ONLY_DEPENDENT
  else
    near = near or dependents_between(id, ids[last])
    local members = few_dependents(id, near)
    if not members then
      note_parent_state(id, COMPLETED, results[i])
      work.details = true
      return flags
    end
    count = #members
    for _, member in ipairs(members) do
      release(string.sub(member, 38, 73), id, string.sub(member, 74), results[i])
    end
  end
  weight = weight + (2 + math.floor(#results[i] / TEXT)) * count
  return flags - HAS_DEPENDENTS
end

-- Count a job for its claim. Most jobs of a call are of the same claim.
local last_head, last_claim, last_runner
local function count_claim(runner, claim)
  if claim ~= last_claim or runner ~= last_runner then
    last_head, last_claim, last_runner = claim_head(runner, claim), claim, runner
  end
  claims[last_head] = (claims[last_head] or 0) + 1
end

-- Collect a finished record; all are written together below.
local function add(i, finished)
  done = done + 1
  if keep > 0 then
    local n = 2 * done
    records[n - 1], records[n] = ids[i], finished
    ended[n - 1], ended[n] = drop_time, ids[i]
  end
end

-- Drop a plain job; without retention only its tombstone is kept.
local function drop_plain(i)
  local n = 2 * #dropped
  done = done + 1
  dropped[#dropped + 1] = ids[i]
  tombstones[n + 1], tombstones[n + 2] = ids[i], attempts[i] .. ' completed'
  tombstone_times[n + 1], tombstone_times[n + 2] = now + TOMBSTONE, ids[i]
end

-- Finish a job that failed before or has a cancel request. Neither reason nor error is kept after success.
local function finish_unusual(i, value)
  local id, before, r = ids[i], read_record(value), read_record(value)
  unusual = unusual + 1
  r.letter, r.updated, r.key_slot = COMPLETED, now, -1
  if starts[i] >= 0 then r.started = r.claimed + starts[i] end
  r.tail = r.tail .. results[i]
  if has(r.flags, HAS_DETAILS) then write_details(id, r, {attempts = read_details(id, r).attempts}) end
  replace_record(id, before, r, now, dirty_keys)
end

-- Complete a job, if it is running the attempt that succeeded.
local function complete_one(i, value)
  local letter, version, attempt, claim, _, claimed, started, length = struct.unpack(HEAD_A, value)
  if letter ~= RUNNING or attempt ~= attempts[i] then return end
  answer[i], seen[ids[i]] = 1, true
  local at = A_SIZE + length + 1
  local flags = struct.unpack('>I4', value, at)
  local rare = bit.band(flags, UNUSUAL + HAS_IDEMPOTENCY_KEY + HAS_CONCURRENCY_KEY + HAS_DEPENDENTS)
  local is_plain = rare % HAS_DEPENDENTS == 0 and (keep > 0 or rare == 0 and bit.band(flags, HAS_MORE) == 0)
  weight = weight + (is_plain and 1 or HEAVY) + math.floor(#value / TEXT)
  if bit.band(rare, UNUSUAL) ~= 0 then
    if rare >= HAS_DEPENDENTS then work.details = true end
    return finish_unusual(i, value)
  end
  local runner, rest = string.sub(value, A_SIZE + 1, at - 1), nil
  local kept_flags = rare >= HAS_DEPENDENTS and pass_result(i, value, at, flags) or flags
  count_claim(runner, claim)
  if keep > 0 and rare % HAS_DEPENDENTS == HAS_CONCURRENCY_KEY then
    rest = without_key_slot(i, value, at, kept_flags)
    is_plain = rest ~= nil
  end
  if not is_plain then return add(i, finish_keyed(i, value, kept_flags)) end
  if keep == 0 then return drop_plain(i) end
  if starts[i] >= 0 then started = claimed + starts[i] end
  local head = struct.pack(HEAD_A, COMPLETED, version + 1, attempt, claim, now, claimed, started, length)
  -- For most jobs only the head changes, and the flags if it had dependents or a key slot.
  if rest then
    add(i, head .. runner .. rest .. results[i])
  elseif kept_flags ~= flags then
    add(i, head .. runner .. struct.pack('>I4', kept_flags) .. string.sub(value, at + 4) .. results[i])
  else
    add(i, head .. string.sub(value, A_SIZE + 1) .. results[i])
  end
end

for i, id in ipairs(ids) do
  local at = (i - 1) % PORTION
  if at == 0 and weight < MAX_WEIGHT then
    if near then forget_waiting(near) end
    near, last = nil, math.min(i + PORTION - 1, #ids)
    values = redis.call('HMGET', K.jobs, unpack(ids, i, last))
  end
  local value = values[at + 1]
  answer[i] = weight < MAX_WEIGHT and 0 or -1
  if value and not seen[id] and weight < MAX_WEIGHT then complete_one(i, value) end  -- a repeated id is completed once
end
if near then forget_waiting(near) end
if done > 0 then add_count(RUNNING, -done) end
if #records > 0 then
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.drop_times, unpack(ended))
  add_count(COMPLETED, done)
end
for head, jobs in pairs(claims) do release_claim(head, jobs) end
if #key_slots > 0 then redis.call('ZREM', K.key_slots, unpack(key_slots)) end
if #keyed > 0 then release_keys(keyed, digests, now) end
if #dropped > 0 then replace_with_tombstones(dropped, tombstones, tombstone_times, now) end
if next(unkept) then forget_jobs(unkept, now) end
if #released > 0 then release_dependents(released, work) end
if next(dirty_keys) then assign_key_slots(dirty_keys, now) end
hint_if_room(done + unusual)
if done > 0 and has_waiters() then publish_completions(seen) end
if work.details or #work.sent > 0 or checks_requested[1] then
  answer[#ids + 1] = to_do()
  for n, each in ipairs(work.sent) do answer[#ids + 1 + n] = each end
end
return answer

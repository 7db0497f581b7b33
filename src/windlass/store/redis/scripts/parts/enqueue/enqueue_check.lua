-- enqueue_check: check new jobs for known ids, key conflicts and refusals. A batch is a list of kinds (jobs that
-- differ only in their own fields) and the order, {kind, number, …}, of jobs that may conflict: they have a key, or
-- their id repeats. `blobs` are the fields of the kinds; see verbs/batch.py.
--! uses: record, indexes, idempotency_keys, key_queue, replace_record, known_ids
local KIND_FLAGS, IDS, DIGESTS, CONCURRENCY_DIGESTS, ON_CONFLICT = 1, 10, 14, 15, 16
local ANSWER_EXISTING, REPLACE_WAITING, RAISE_CONFLICT = 0, 1, 2
local STORED, CLOSED, CONFLICT, PARENT_KEY_TAKEN = 0, 1, 2, 4

-- decide_key in core/jobs/idempotency.py, without refusals: whether the new job replaces the holder of the key.
local function replaces(letter, on_conflict)
  return on_conflict == REPLACE_WAITING and letter and waiting_letters[letter]
end

-- The holder of the key, and its letter if it is stored.
local function key_owner(digest, now)
  local holder = key_holder(digest, now)
  local value = holder and redis.call('HGET', K.jobs, holder)
  return holder, value and string.byte(value)
end

local function key_holders(kinds)
  local held = {}
  for _, kind in ipairs(kinds) do
    if kind[DIGESTS] then
      local ids = redis.call('HMGET', K.idempotency_keys, unpack(kind[DIGESTS]))
      for i, digest in ipairs(kind[DIGESTS]) do
        if ids[i] then held[digest] = ids[i] end
      end
    end
  end
  return held
end

-- Resolve conflicts of idempotency keys with stored jobs and within the batch, in order, as in store/keys.py. Returns
-- `existing` (by kind and number: the id of the job to return instead), `taken`, `replaced`, or `conflict`. A `late`
-- batch was checked before, and is not refused.
local function resolve_key_conflicts(kinds, order, known, now, late)
  local held = key_holders(kinds)
  local found = {existing = {}, taken = {}, replaced = {}, contested = {}}
  local here, letters = {}, {}
  for k in ipairs(kinds) do found.existing[k] = {} end
  for at = 1, #order, 2 do
    local k, i = order[at], order[at + 1]
    local kind = kinds[k]
    local id, digest = kind[IDS][i], kind[DIGESTS] and kind[DIGESTS][i]
    local existing = (known[k][i] or here[id]) and id
    if not existing and digest and held[digest] then
      local holder, letter = held[digest], letters[digest]
      if not letter then holder, letter = key_owner(digest, now) end
      found.contested[digest] = true
      if holder == id then  -- the job was dropped and its id forgotten, but its window is open: still the same job
        existing = id
      elseif holder and kind[ON_CONFLICT] == RAISE_CONFLICT and not late then
        found.conflict = {CONFLICT, k, i, holder}
        return found
      elseif holder and replaces(letter, kind[ON_CONFLICT]) then
        found.replaced[#found.replaced + 1] = {holder, id}
      else
        existing = holder
      end
    end
    if existing then
      found.existing[k][i] = existing
    else
      here[id] = true
      if digest then
        held[digest], letters[digest] = id, PENDING  -- stands for any waiting letter
        found.taken[digest] = id
      end
    end
  end
  return found
end

local function any_new(kinds, known, found)
  for k, kind in ipairs(kinds) do
    for i in ipairs(kind[IDS]) do
      if not known[k][i] and not (found.existing[k] and found.existing[k][i]) then return true end
    end
  end
  return false
end

-- Whether another job has the key of a parent in this batch. Its children must wait for that job instead.
local function is_parent_key_taken(kinds, found)
  for k, kind in ipairs(kinds) do
    if has(kind[KIND_FLAGS], HAS_DEPENDENTS) then
      for i, existing in pairs(found.existing[k]) do
        if existing ~= kind[IDS][i] then return true end
      end
    end
  end
  return false
end

-- Check a batch without changing anything. Returns known ids, key conflicts, and the reply if the batch is refused.
local function check_batch(batch, now, late)
  local kinds, order = batch[1], batch[2]
  local known = {}
  for k, kind in ipairs(kinds) do known[k] = known_ids(kind[IDS], now) end
  local found = order and resolve_key_conflicts(kinds, order, known, now, late) or {existing = {}}
  if found.conflict then return known, found, found.conflict end
  if order and not late and is_parent_key_taken(kinds, found) then return known, found, {PARENT_KEY_TAKEN} end
  if not late and redis.call('HGET', K.queue, 'closed') == '1' and any_new(kinds, known, found) then
    return known, found, {CLOSED}
  end
  return known, found
end

-- The reply: kind, number and id of each existing job; 0, 0 and the id of each job that must register with its parents;
-- 0, 1 and nothing if `notify_dependents` must be called.
local function answer_of(batch, known, found, to_register, parents_changed)
  local answer = {STORED}
  for k, kind in ipairs(batch[1]) do
    local existing = found.existing[k] or {}
    for i, id in ipairs(kind[IDS]) do
      local holder = existing[i] or known[k][i] and id
      if holder then
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = k, i, holder
      end
    end
  end
  for _, id in ipairs(to_register or {}) do
    local n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = 0, 0, id
  end
  if parents_changed then answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = 0, 1, '' end
  return answer
end

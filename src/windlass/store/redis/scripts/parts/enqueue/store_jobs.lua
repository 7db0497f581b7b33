-- store_jobs: write new jobs after enqueue_check, all of a kind at once.
--! uses: enqueue_check, byte_order, indexes, dependents
local KIND_BLOB, KIND_OWN, KIND_LIMIT, KIND_PARENTS, KIND_PARENT, KIND_TIMES = 12, 13, 17, 18, 19, 20
local KIND_RUN_AT = 4

local function last_of_type(type, sort_priority)
  local head = struct.pack('>I4I2', type, sort_priority + LEVEL)
  local last = redis.call('ZREVRANGEBYLEX', K.ready, '(' .. head .. '\255\255\255\255\255\255\255\255\255', '[' .. head, 'LIMIT', 0, 1)[1]
  return last and struct.unpack('>I8', last, 7) or 0
end

-- The last rank of a type at a sort_priority; of any type while the clock is behind an earlier enqueue.
local function last_rank(type, sort_priority, set_back)
  local last = last_of_type(type, sort_priority)
  for _, other in ipairs(set_back and redis.call('HKEYS', K.pending_counts) or {}) do
    last = math.max(last, last_of_type(tonumber(other), sort_priority))
  end
  return last
end

-- Set letter, time and rank of a job without parents. All that are due at once have the same rank.
local function set_time(b, run_at)
  b.run_at = run_at
  if run_at > b.created then
    b.letter, b.rank = SCHEDULED, run_at
    return
  end
  if not b.due_rank then
    local last = last_rank(b.type, b.sort_priority, b.set_back)
    b.due_rank = last > b.now and last + 1 or b.created
  end
  b.letter, b.rank = PENDING, b.due_rank
end

-- The values that jobs of a kind share, with times as in core/jobs/admission.py. `moment` is when they were enqueued; for
-- a large batch, when it was committed.
local function kind_values(kind, moment, now, settings, all_new)
  local b = {created = moment, now = now, set_back = now < (tonumber(settings[3]) or 0)}
  b.flags, b.name, b.sort_priority, b.run_at, b.delay, b.max_attempts, b.timeout, b.expires, b.expires_in = unpack(kind, 1, 9)
  b.type = type_number(b.name)
  if not all_new then b.flags = bit.band(b.flags, bit.bnot(ONLY_DEPENDENT)) end
  b.run_at = b.run_at or moment + b.delay
  if not b.expires then b.expires = b.expires_in and moment + b.expires_in or 0 end
  b.max_attempts = b.max_attempts or tonumber(settings[1])
  b.timeout = b.timeout or tonumber(settings[2])
  if kind[KIND_PARENTS] then
    b.letter, b.run_at, b.rank = BLOCKED, kind[KIND_RUN_AT] or moment, kind[KIND_RUN_AT] and 0 or b.delay
    return b
  end
  set_time(b, b.run_at)
  return b
end

local function head_of(b, letter, key_slot, size)
  local more = (b.expires > 0 or key_slot >= 0) and struct.pack(HEAD_C, 0, b.expires, key_slot, 0, 0, 0, 0, 0, 0) or ''
  return struct.pack(HEAD_A, letter, 0, 0, 0, b.created, 0, 0, 0)
    .. struct.pack(HEAD_B, more == '' and b.flags or b.flags + HAS_HEAD_C, b.type, b.sort_priority, b.rank, b.run_at, b.created,
      b.timeout, b.max_attempts, size) .. more
end

-- The number of new jobs by key. A single one for which a key slot is free need not wait in the index first.
local function new_waiters(kinds, known, found)
  local count = {}
  for k, kind in ipairs(kinds) do
    for i, digest in ipairs(kind[CONCURRENCY_DIGESTS] or {}) do
      if not known[k][i] and not (found.existing[k] and found.existing[k][i]) then count[digest] = (count[digest] or 0) + 1 end
    end
  end
  return count
end

-- Letter and key slot of a due job. It must wait behind other jobs; `member` is its entry of `waiting_for_key`.
local function try_key_slot(digest, member, limit, count, dirty_keys)
  local head = first_waiting(digest)
  if head then
    if comes_before(member, head) then dirty_keys[digest] = true end
  elseif count[digest] == 1 then
    local key_slot = lowest_free_key_slot(digest, limit)
    if key_slot then return PENDING, key_slot end
  else
    dirty_keys[digest] = true
  end
  return WAITING_FOR_KEY, -1
end

local function add_pair(pairs_, member)
  local n = #pairs_
  pairs_[n + 1], pairs_[n + 2] = 0, member
end

-- The index entries of the new jobs of a kind, as pairs for HSET and ZADD; the number of these jobs, and of the pending
-- ones. Jobs without a key may each have their own time (KIND_TIMES): moments, or delays if the kind has no moment.
local function entries_of_kind(kind, b, blobs, known, existing, count, dirty_keys)
  local ids, payloads, digest_of, own_fields = kind[IDS], kind[11], kind[CONCURRENCY_DIGESTS], kind[KIND_OWN]
  local records, index, ready, due, waiting, key_slots, expiring, tenant_queues = {}, {}, {}, {}, {}, {}, {}, {}
  local fields = blobs[kind[KIND_BLOB]]
  local head = head_of(b, b.letter, -1, #fields) .. fields
  local waiting_order = struct.pack('>I2I8', (has(b.flags, STRICT) and 0 or b.sort_priority) + LEVEL, b.rank)
  local stored, pending, times, ready_head, tenant_head = 0, 0, kind[KIND_TIMES], nil, nil
  for i, id in ipairs(ids) do
    if not known[i] and not (existing and existing[i]) then
      stored = stored + 1
      if times then
        set_time(b, kind[KIND_RUN_AT] and times[i] or b.created + times[i])
        head = head_of(b, b.letter, -1, #fields) .. fields
      end
      local n, letter, key_slot, payload = 2 * stored, b.letter, -1, payloads[i]
      if own_fields then
        fields = blobs[kind[KIND_BLOB] + i - 1]
        if digest_of and letter == PENDING then
          letter, key_slot = try_key_slot(digest_of[i], digest_of[i] .. waiting_order .. id, kind[KIND_LIMIT], count, dirty_keys)
        end
        head = head_of(b, letter, key_slot, #fields) .. fields
      end
      records[n - 1], records[n] = id, head .. struct.pack('>I4', #payload) .. payload
      index[n - 1], index[n] = 0, id
      if b.expires > 0 then expiring[n - 1], expiring[n] = b.expires, id end
      if letter == PENDING then
        if pending == 0 then
          ready_head = struct.pack('>I4I2I8', b.type, b.sort_priority + LEVEL, b.rank)
          tenant_head = fair() and tenant_member('', {flags = b.flags, sort_priority = b.sort_priority, type = b.type, rank = b.rank,
            fields = cmsgpack.unpack(fields)})
        end
        pending = pending + 1
        local p = 2 * pending
        ready[p - 1], ready[p] = 0, ready_head .. id
        if tenant_head then tenant_queues[p - 1], tenant_queues[p] = 0, tenant_head .. id end
        if key_slot >= 0 then add_pair(key_slots, digest_of[i] .. struct.pack('>I2', key_slot) .. id) end
      elseif letter == SCHEDULED then
        local d = 2 * (stored - pending)
        due[d - 1], due[d] = b.run_at, id
      elseif letter == WAITING_FOR_KEY then
        add_pair(waiting, digest_of[i] .. waiting_order .. id)
      end
    end
  end
  return {records = records, ids = index, ready = ready, due = due, waiting_for_key = waiting, key_slots = key_slots, expiring = expiring,
    tenant_queues = tenant_queues}, stored, pending
end

local function add(key, members)
  if #members > 0 then redis.call('ZADD', key, unpack(members)) end
end

-- Add the jobs of a kind to `children`; each has its own parent.
local function add_children(kind, known, existing)
  local pairs_ = {}
  for i, id in ipairs(kind[IDS]) do
    if kind[KIND_PARENT][i] and not known[i] and not (existing and existing[i]) then
      add_pair(pairs_, kind[KIND_PARENT][i] .. id)
    end
  end
  add(K.children, pairs_)
end

local function store_kind(kind, b, blobs, known, existing, count, dirty_keys)
  local entries, stored, pending = entries_of_kind(kind, b, blobs, known, existing, count, dirty_keys)
  if stored == 0 then return end
  redis.call('HSET', K.jobs, unpack(entries.records))
  add(K.ids, entries.ids)
  add(K.ready, entries.ready)
  add(K.due, entries.due)
  add(K.waiting_for_key, entries.waiting_for_key)
  add(K.key_slots, entries.key_slots)
  add(K.expiring, entries.expiring)
  add(K.tenant_queues, entries.tenant_queues)
  if kind[KIND_PARENTS] then
    add_children(kind, known, existing)
  elseif has(b.flags, IS_CHILD) then
    local parent = cmsgpack.unpack(blobs[kind[KIND_BLOB]])[PARENT]
    for n = 2, #entries.ids, 2 do redis.call('ZADD', K.children, 0, parent .. entries.ids[n]) end
  end
  if stored > pending then
    local letter = b.letter == BLOCKED and BLOCKED or #entries.due > 0 and SCHEDULED or WAITING_FOR_KEY
    add_count(letter, stored - pending)
  end
  if pending > 0 then
    add_count(PENDING, pending)
    if redis.call('HINCRBY', K.pending_counts, b.type, pending) == pending then publish_hint() end
  end
end

-- Cancel replaced jobs, and give the new ones their keys.
local function transfer_keys(found, now, dirty_keys)
  for _, pair in ipairs(found.replaced) do
    local id, new_id = pair[1], pair[2]
    cancel_waiting(id, read_record(redis.call('HGET', K.jobs, id)), 'replaced by ' .. new_id, now, dirty_keys)
  end
  local entries = {}
  for digest, id in pairs(found.taken) do
    entries[#entries + 1] = digest
    entries[#entries + 1] = id
    if found.contested[digest] then redis.call('ZREM', K.key_windows, digest) end
  end
  if #entries > 0 then redis.call('HSET', K.idempotency_keys, unpack(entries)) end
end

-- Whether no job of a batch is known or has an existing key. Only then is the dependent in the fields of a parent the
-- one that is stored.
local function are_all_new(kinds, known, found)
  for k, kind in ipairs(kinds) do
    if found.existing[k] and next(found.existing[k]) then return false end
    for i in ipairs(kind[IDS]) do
      if known[k][i] then return false end
    end
  end
  return true
end

-- Register jobs with parents of this batch or queue. Returns the ids of jobs with other parents, and of known ones whose
-- producer died before it registered them.
local LINKED = 1  -- its dependent is in its fields
local MAX_RESULT_BYTES = 100000  -- of results; more are read by `register_children`
local function link_parents(kinds, known, found, all_new, now, dirty_keys)
  local result_bytes = 0
  local waiting_links, fresh, links, to_register = {}, {}, {}, {}
  for k, kind in ipairs(kinds) do
    local is_linked = all_new and has(kind[KIND_FLAGS], ONLY_DEPENDENT)
    for i, id in ipairs(kind[IDS]) do
      if not known[k][i] and not (found.existing[k] and found.existing[k][i]) then
        fresh[id] = is_linked and LINKED or true
        if kind[KIND_PARENTS] then links[#links + 1] = {id, kind[KIND_PARENTS][i]} end
      elseif kind[KIND_PARENTS] and known[k][i] and redis.call('ZSCORE', K.parent_checks, id) then
        to_register[#to_register + 1] = id
      end
    end
  end
  local function link(id, parent)
    if fresh[parent] == LINKED then return end
    if fresh[parent] then return add_pair(waiting_links, WAITING .. parent .. id) end
    local letter, result
    if result_bytes <= MAX_RESULT_BYTES then letter, result = register_dependent(parent, id, '') end
    if letter and result then
      local value = redis.call('HGET', K.jobs, id)
      result_bytes = result_bytes + #value + #result
      apply_parent_state(id, value, parent, letter, result, now, dirty_keys)
    elseif to_register[#to_register] ~= id then
      to_register[#to_register + 1] = id
      request_parent_check(id, now)
    end
  end
  for _, each in ipairs(links) do
    for at = 1, #each[2], 36 do link(each[1], string.sub(each[2], at, at + 35)) end
  end
  add(K.dependents, waiting_links)
  return to_register
end

local function has_parents(kinds)
  for _, kind in ipairs(kinds) do
    if kind[KIND_PARENTS] then return true end
  end
  return false
end

-- Store a checked batch. Returns the jobs that must register with parents (`register_children`), and whether dependents
-- must be notified.
local function store_jobs(batch, blobs, moment, now, known, found)
  local settings = redis.call('HMGET', K.queue, 'max_attempts', 'timeout', 'last_enqueue')
  if now > (tonumber(settings[3]) or 0) then redis.call('HSET', K.queue, 'last_enqueue', now) end
  local count, dirty_keys = new_waiters(batch[1], known, found), {}
  local linked = has_parents(batch[1])
  local all_new = linked and are_all_new(batch[1], known, found)
  for k, kind in ipairs(batch[1]) do
    store_kind(kind, kind_values(kind, moment, now, settings, all_new), blobs, known[k], found.existing[k], count, dirty_keys)
  end
  if found.taken then transfer_keys(found, now, dirty_keys) end
  local to_register = linked and link_parents(batch[1], known, found, all_new, now, dirty_keys) or nil
  if next(dirty_keys) then assign_key_slots(dirty_keys, now) end
  local may_change_parents = to_register or found.replaced and #found.replaced > 0
  return to_register or {}, may_change_parents and redis.call('EXISTS', K.parent_changes) == 1
end

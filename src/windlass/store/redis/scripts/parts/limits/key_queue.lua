-- key_queue: jobs that wait for a concurrency key. A script that frees a key slot, or changes which jobs wait, calls
-- `mark_dirty`, and `assign_key_slots` at its end: so a first waiting job never leaves a key slot free that it may have.
--! uses: record, indexes
local DIGEST_END = '\255\255\255'  -- above every sort_priority, rank, key slot and id
local WAITING_ID_AT = 32 + 2 + 8 + 1  -- where an id begins in a member: after digest, sort_priority and rank
local DEFAULT_KEY_LIMIT = 1
local MAX_GRANTED, FIRST_READ, PORTION_READ = 500, 2, 100

local function mark_dirty(dirty_keys, r)
  if has(r.flags, HAS_CONCURRENCY_KEY) then dirty_keys[fields_of(r)[CONCURRENCY_DIGEST]] = true end
end

-- Returns a function that gives the lowest free slot of a key under the limit of the next waiting job, or nil; slots
-- that it gave count as taken. They are found by bisection, since a key may have thousands. As assign_key_slots in
-- core/flow/key_slots.py.
local function free_key_slots(digest)
  local first = '[' .. digest
  local taken, low, given = redis.call('ZLEXCOUNT', K.key_slots, first, '(' .. digest .. DIGEST_END), 0, 0
  return function(limit)
    local high = taken + given
    if high >= (limit or DEFAULT_KEY_LIMIT) then return nil end
    while low < high do
      local middle = math.floor((low + high) / 2)
      local upto = '(' .. digest .. struct.pack('>I2', middle) .. DIGEST_END
      if redis.call('ZLEXCOUNT', K.key_slots, first, upto) + given == middle + 1 then low = middle + 1 else high = middle end
    end
    low, given = low + 1, given + 1
    return low - 1
  end
end

-- The key slot for a single job, or nil.
local function lowest_free_key_slot(digest, limit) return free_key_slots(digest)(limit) end

-- The first members that wait for a key, after `after` others.
local function waiting_members(digest, after, max_count)
  return redis.call('ZRANGEBYLEX', K.waiting_for_key, '[' .. digest, '(' .. digest .. DIGEST_END, 'LIMIT', after, max_count)
end

-- The first member that waits for a key, or nil.
local function first_waiting(digest) return waiting_members(digest, 0, 1)[1] end

-- Decoded fields by their packed text: most jobs of a key have the same.
local decoded = {}
local function fields_in(value, at, size)
  local text = string.sub(value, at, at + size - 1)
  local fields = decoded[text]
  if not fields then
    fields = cmsgpack.unpack(text)
    decoded[text] = fields
  end
  return fields
end

-- Head A and head B of a record without a runner, and their size.
local WITHOUT_RUNNER, WITHOUT_RUNNER_SIZE = '>BI4I4I4i8i8i8BI4I4i4i8i8i8i8I2I4', 88

-- The key limit of a record, whether its job waits for its key, and whether it has neither runner nor head C.
local function limit_of(value)
  if string.byte(value) ~= WAITING_FOR_KEY then return nil end
  if string.byte(value, A_SIZE) == 0 then
    local flags = struct.unpack('>I4', value, A_SIZE + 1)
    if not has(flags, HAS_HEAD_C) then
      local size = struct.unpack('>I4', value, WITHOUT_RUNNER_SIZE - 3)
      return fields_in(value, WITHOUT_RUNNER_SIZE + 1, size)[KEY_LIMIT], true, true
    end
  end
  return fields_of(read_record(value))[KEY_LIMIT], true, false
end

-- The new record, the member in `ready` and the type of a job that gets a key slot; only what changes is read.
local function granted_plain(id, value, key_slot, now)
  local _, version, attempt, claim, _, claimed, started, _, flags, type, sort_priority, _, run_at, created, timeout, max_attempts, size =
    struct.unpack(WITHOUT_RUNNER, value)
  local head = struct.pack(WITHOUT_RUNNER, PENDING, version + 1, attempt, claim, now, claimed, started, 0, flags + HAS_HEAD_C, type,
    sort_priority, now, run_at, created, timeout, max_attempts, size)
  return head .. struct.pack(HEAD_C, 0, 0, key_slot, 0, 0, 0, 0, 0, 0) .. string.sub(value, WITHOUT_RUNNER_SIZE + 1),
    struct.pack('>I4I2I8', type, sort_priority + LEVEL, now) .. id, type
end

local function granted_other(id, value, key_slot, grants, n)
  local r = read_record(value)
  r.letter, r.version, r.key_slot, r.rank, r.updated = PENDING, r.version + 1, key_slot, grants.now, grants.now
  if fair() then grants.tenant_queues[n - 1], grants.tenant_queues[n] = 0, tenant_member(id, r) end
  return write_record(r), ready_member(id, r), r.type
end

-- Give a waiting job a key slot; it ranks behind jobs that are pending already.
local function grant_key_slot(grants, digest, member, id, value, key_slot, is_plain)
  grants.jobs = grants.jobs + 1
  grants.granted[id] = true
  local n, record, pending, type = 2 * grants.jobs, nil, nil, nil
  if is_plain and not fair() then
    record, pending, type = granted_plain(id, value, key_slot, grants.now)
  else
    record, pending, type = granted_other(id, value, key_slot, grants, n)
  end
  grants.members[grants.jobs] = member
  grants.records[n - 1], grants.records[n] = id, record
  grants.key_slots[n - 1], grants.key_slots[n] = 0, digest .. struct.pack('>I2', key_slot) .. id
  grants.ready[n - 1], grants.ready[n] = 0, pending
  grants.types[type] = (grants.types[type] or 0) + 1
end

-- Grant all free slots of a key. Usually one was freed, so the caller has read two waiting jobs: `members`, with their
-- records by id in `values`.
local function grant_key_slots(grants, digest, members, values, lost)
  local max_count, looked = FIRST_READ, 0
  local next_key_slot = free_key_slots(digest)
  while members[1] do
    for _, member in ipairs(members) do
      if grants.jobs == MAX_GRANTED then return redis.call('SADD', K.stalled_keys, digest) end
      local id = string.sub(member, WAITING_ID_AT)
      local value = values[id] or redis.call('HGET', K.jobs, id)
      local limit, waits, is_plain = nil, nil, nil
      if value then limit, waits, is_plain = limit_of(value) end
      if waits then
        local key_slot = next_key_slot(limit)
        if not key_slot then return end
        grant_key_slot(grants, digest, member, id, value, key_slot, is_plain)
      else
        lost[#lost + 1] = member  -- the job was removed by hand, or a script was stopped: the record decides
      end
    end
    if #members < max_count then return end
    looked, max_count = looked + #members, 100
    members = waiting_members(digest, looked, max_count)
  end
end

-- Give the free slots of these keys to the first waiting jobs; returns {id = true} of those. What is too much for one
-- call is left to `assign_stalled`. Expiry is unchanged.
local function assign_key_slots(dirty_keys, now)
  local grants = {now = now, jobs = 0, granted = {}, members = {}, records = {}, key_slots = {}, ready = {}, tenant_queues = {}, types = {}}
  local lost, members, ids, values = {}, {}, {}, {}
  for digest in pairs(dirty_keys) do
    local found = waiting_members(digest, 0, FIRST_READ)
    if found[1] then members[digest] = found end
    for _, member in ipairs(found) do ids[#ids + 1] = string.sub(member, WAITING_ID_AT) end
  end
  for at = 1, #ids, PORTION_READ do
    local last = math.min(at + PORTION_READ - 1, #ids)
    for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids, at, last))) do values[ids[at + i - 1]] = value end
  end
  for digest, found in pairs(members) do grant_key_slots(grants, digest, found, values, lost) end
  for _, member in ipairs(lost) do redis.call('ZREM', K.waiting_for_key, member) end
  if grants.jobs == 0 then return grants.granted end
  redis.call('ZREM', K.waiting_for_key, unpack(grants.members))
  redis.call('HSET', K.jobs, unpack(grants.records))
  redis.call('ZADD', K.key_slots, unpack(grants.key_slots))
  redis.call('ZADD', K.ready, unpack(grants.ready))
  if #grants.tenant_queues > 0 then redis.call('ZADD', K.tenant_queues, unpack(grants.tenant_queues)) end
  add_count(WAITING_FOR_KEY, -grants.jobs)
  add_count(PENDING, grants.jobs)
  for type, jobs in pairs(grants.types) do
    if redis.call('HINCRBY', K.pending_counts, type, jobs) == jobs then publish_hint() end
  end
  return grants.granted
end

-- Assign slots of some keys that had too many free ones for one call. Returns whether such keys are left.
local function assign_stalled(now)
  local dirty_keys = {}
  for _, digest in ipairs(redis.call('SPOP', K.stalled_keys, 10)) do dirty_keys[digest] = true end
  if next(dirty_keys) then assign_key_slots(dirty_keys, now) end
  return redis.call('EXISTS', K.stalled_keys) == 1
end

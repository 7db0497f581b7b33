-- indexes: the indexes of a job follow from its record. A script removes a job from its indexes before it changes the
-- record, and adds it again afterwards. `ids`, `jobs` and `idempotency_keys` are not among them.
--! uses: record, hint, claims
local waiting_letters = {[PENDING] = true, [SCHEDULED] = true, [THROTTLED] = true, [FAILED] = true, [BLOCKED] = true,
  [WAITING_FOR_KEY] = true, [PARKED] = true}
local finished_letters = {[COMPLETED] = true, [DEAD] = true, [CANCELLED] = true}

local function ready_member(id, r)
  return struct.pack('>I4I2I8', r.type, r.sort_priority + LEVEL, r.rank) .. id
end

local function tenant_member(id, r)
  local tenant = has(r.flags, HAS_TENANT) and fields_of(r)[TENANT] or ''
  return struct.pack('>I2', r.sort_priority + LEVEL) .. tenant .. '\0' .. struct.pack('>I4I8', r.type, r.rank) .. id
end

-- The member of a job that waits for its key; strict order ignores the priority.
local function waiting_member(id, r)
  local sort_priority = has(r.flags, STRICT) and 0 or r.sort_priority
  return fields_of(r)[CONCURRENCY_DIGEST] .. struct.pack('>I2I8', sort_priority + LEVEL, r.rank) .. id
end

local function key_slot_member(id, r) return fields_of(r)[CONCURRENCY_DIGEST] .. struct.pack('>I2', r.key_slot) .. id end
local function parked_member(id, r) return struct.pack('>I4I8', r.type, r.rank) .. id end
local function throttled_member(id, r)
  return fields_of(r)[CONCURRENCY_DIGEST] .. struct.pack('>I2I8', r.sort_priority + LEVEL, r.rank) .. id
end

local function add_count(letter, by) redis.call('HINCRBY', K.counts, string.char(letter), by) end

local is_fair
local function fair()
  if is_fair == nil then is_fair = redis.call('HGET', K.queue, 'fair') == '1' end
  return is_fair
end

local function remove_from_indexes(id, r)
  local letter = r.letter
  add_count(letter, -1)
  if letter == PENDING then
    redis.call('ZREM', K.ready, ready_member(id, r))
    redis.call('HINCRBY', K.pending_counts, r.type, -1)
    redis.call('ZREM', K.tenant_queues, tenant_member(id, r))
  elseif letter == RUNNING then
    release_claim(claim_head(r.runner, r.claim), 1)
    if has(r.flags, CANCEL_REQUESTED) then redis.call('SREM', K.cancels, id) end
  elseif letter == SCHEDULED or letter == FAILED or letter == THROTTLED then
    redis.call('ZREM', K.due, id)
    if letter == THROTTLED then redis.call('ZREM', K.throttled, throttled_member(id, r)) end
  elseif letter == WAITING_FOR_KEY then
    redis.call('ZREM', K.waiting_for_key, waiting_member(id, r))
  elseif letter == PARKED then
    redis.call('ZREM', K.parked, parked_member(id, r))
  elseif finished_letters[letter] then
    redis.call('ZREM', K.drop_times, id)
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    redis.call('ZREM', K.by_status, string.char(letter) .. id)
    redis.call('ZREM', K.failures, id)
  end
  if r.key_slot >= 0 then redis.call('ZREM', K.key_slots, key_slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[letter] then redis.call('ZREM', K.expiring, id) end
end

-- `drop_at` is the moment at which a finished job may be dropped.
local function add_to_indexes(id, r, drop_at)
  local letter = r.letter
  add_count(letter, 1)
  if letter == PENDING then
    redis.call('ZADD', K.ready, 0, ready_member(id, r))
    if redis.call('HINCRBY', K.pending_counts, r.type, 1) == 1 then publish_hint() end
    if fair() then redis.call('ZADD', K.tenant_queues, 0, tenant_member(id, r)) end
  elseif letter == SCHEDULED or letter == FAILED or letter == THROTTLED then
    redis.call('ZADD', K.due, r.run_at, id)
    if letter == THROTTLED then redis.call('ZADD', K.throttled, 0, throttled_member(id, r)) end
  elseif letter == WAITING_FOR_KEY then
    redis.call('ZADD', K.waiting_for_key, 0, waiting_member(id, r))
  elseif letter == PARKED then
    redis.call('ZADD', K.parked, 0, parked_member(id, r))
  elseif finished_letters[letter] then
    redis.call('ZADD', K.drop_times, drop_at, id)
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    redis.call('ZADD', K.by_status, 0, string.char(letter) .. id)
    if letter ~= CANCELLED then redis.call('ZADD', K.failures, r.updated, id) end
  end
  if r.key_slot >= 0 then redis.call('ZADD', K.key_slots, 0, key_slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[letter] then redis.call('ZADD', K.expiring, r.expires, id) end
end

-- How long a finished job of this queue is kept.
local retention_fields = {[COMPLETED] = 'keep_completed', [CANCELLED] = 'keep_cancelled', [DEAD] = 'keep_dead'}
local retentions = {}
local function retention_of(letter)
  if not retentions[letter] then retentions[letter] = tonumber(redis.call('HGET', K.queue, retention_fields[letter])) end
  return retentions[letter]
end

-- The number of a type in this queue; a new type gets the next number.
local function type_number(name)
  local number = redis.call('HGET', K.types, name)
  if number then return tonumber(number) end
  number = redis.call('HLEN', K.types) + 1
  redis.call('HSET', K.types, name, number)
  return number
end

-- The numbers of types with pending jobs.
local function pending_types()
  local types, counted = {}, redis.call('HGETALL', K.pending_counts)
  for i = 1, #counted, 2 do
    if tonumber(counted[i + 1]) > 0 then types[#types + 1] = tonumber(counted[i]) end
  end
  return types
end

-- repair_jobs: add missing index entries of jobs, some at a time, after a script stopped half-way. Request: a
-- cursor (`0`: the start). Reply: the next cursor (`0`: the end), and how many entries were missing.
--! effect: writes
--! memory: any
--! uses: queue_call, record, indexes, retention, readable
--! keys: queue, jobs, ids, ready, tenant_queues, due, throttled, waiting_for_key, parked, drop_times, by_status, failures, slots, expiring, idempotency_keys, parent_checks, children, cancels, held, claim_counts
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
local STEP = 50
local now, repaired = now_micros(), 0

local function must_be(key, score, member)
  if redis.call('ZSCORE', key, member) then return end
  redis.call('ZADD', key, score, member)
  repaired = repaired + 1
end

-- What a runner holds is found by its claim; ids of one claim may come one after the other.
local function must_be_held(id, r)
  local head = claim_head(r.runner, r.claim)
  local member = claim_member(head)
  if member and string.find(member, id, #head + 1, true) then return end
  if member then redis.call('ZREM', K.held, member) end
  redis.call('ZADD', K.held, 0, (member or head) .. id)
  redis.call('HINCRBY', K.claim_counts, head, 1)
  repaired = repaired + 1
end

local function check_waiting(id, r)
  local letter = r.letter
  if letter == PENDING then
    must_be(K.ready, 0, ready_member(id, r))
    if fair() then must_be(K.tenant_queues, 0, tenant_member(id, r)) end
  elseif letter == SCHEDULED or letter == FAILED or letter == THROTTLED then
    must_be(K.due, r.run_at, id)
    if letter == THROTTLED then must_be(K.throttled, 0, throttled_member(id, r)) end
  elseif letter == WAITING_FOR_KEY then
    must_be(K.waiting_for_key, 0, waiting_member(id, r))
  elseif letter == PARKED then
    must_be(K.parked, 0, parked_member(id, r))
  elseif letter == BLOCKED and has(r.flags, WAITS_FOR_PARENTS) then
    must_be(K.parent_checks, now, id)
  end
  if r.expires > 0 then must_be(K.expiring, r.expires, id) end
end

local function check(id, r)
  local letter = r.letter
  must_be(K.ids, 0, id)
  if waiting_letters[letter] then
    check_waiting(id, r)
  elseif finished_letters[letter] then
    must_be(K.drop_times, r.updated + retention_of(letter), id)
  elseif letter == RUNNING then
    must_be_held(id, r)
    if has(r.flags, CANCEL_REQUESTED) then redis.call('SADD', K.cancels, id) end
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    must_be(K.by_status, 0, string.char(letter) .. id)
    if letter ~= CANCELLED then must_be(K.failures, r.updated, id) end
  end
  if r.slot >= 0 then must_be(K.slots, 0, slot_member(id, r)) end
  if has(r.flags, IS_CHILD) then must_be(K.children, 0, fields_of(r)[PARENT] .. id) end
  if has(r.flags, HAS_IDEMPOTENCY_KEY) and not finished_letters[letter] then
    local digest = fields_of(r)[KEY_DIGEST]
    if redis.call('HEXISTS', K.idempotency_keys, digest) == 0 then redis.call('HSET', K.idempotency_keys, digest, id) end
  end
end

local cursor, page = unpack(redis.call('HSCAN', K.jobs, request, 'COUNT', STEP))
for i = 1, #page, 2 do
  local r = readable(page[i + 1])
  if r then check(page[i], r) end
end
return {cursor, repaired}

-- repair_jobs: add missing index entries of jobs, some at a time, after a script stopped half-way. Request: a
-- cursor (`0`: the start). Reply: the next cursor (`0`: the end), and how many entries were missing.
--! effect: writes
--! uses: record, index_entries, claims
--! keys: ids, ready, tenant_queues, due, throttled, expiring, drop_times, by_status, failures, waiting_for_key, key_slots, parked
local STEP = 50
local now, repaired = now_micros(), 0

local function must_be(key, score, member)
  if redis.call('ZSCORE', key, member) then return end
  redis.call('ZADD', key, score, member)
  repaired = repaired + 1
end

-- Add a running job to the member of its claim in `held`, one job at a time.
local function must_be_held(id, r)
  local head = claim_head(r.runner, r.claim)
  local member = claim_member(head)
  if member and string.find(member, id, #head + 1, true) then return end
  if member then redis.call('ZREM', K.held, member) end
  redis.call('ZADD', K.held, 0, (member or head) .. id)
  redis.call('HINCRBY', K.claim_counts, head, 1)
  repaired = repaired + 1
end

local function check(id, r)
  for _, entry in ipairs(index_entries(id, r)) do must_be(K[entry[1]], entry[2], entry[3]) end
  if r.letter == BLOCKED and has(r.flags, WAITS_FOR_PARENTS) then
    must_be(K.parent_checks, now, id)
  elseif r.letter == RUNNING then
    must_be_held(id, r)
    if has(r.flags, CANCEL_REQUESTED) then redis.call('SADD', K.cancels, id) end
  end
  if has(r.flags, IS_CHILD) then must_be(K.children, 0, fields_of(r)[PARENT] .. id) end
  if has(r.flags, HAS_IDEMPOTENCY_KEY) and not finished_letters[r.letter] then
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

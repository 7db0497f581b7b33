-- limited_start: start the next jobs of a limited queue, one after the other, as far as their rates allow; others
-- are throttled, expired ones cancelled. A claim is a table, made by `open_claim`; its `left` is how many more may
-- start. A candidate is {id, order, head, tenant member}. Order: sort_priority, rank and id; head: its prefix in
-- `ready`; tenant member: its member of `tenant_queues`, if it was found there.
--! uses: record, indexes, details, replace_record, key_queue, record_claim, merged_stream, rate_check, token_buckets
local MAX_WALKED = 200

-- When each of these throttled jobs is due again, and its cost. An entry without a throttled record is removed.
local function due_times_of(members)
  local found, ids = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, -36) end
  for i, value in ipairs(#ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}) do
    if value and string.byte(value) == THROTTLED then
      local r = read_record(value)
      found[#found + 1] = {r.run_at, has(r.flags, COSTLY) and fields_of(r)[RATE_COST] or 1}
    else
      redis.call('ZREM', K.throttled, members[i])
    end
  end
  return found
end

-- Throttled jobs of a key with an order after `from` and before `to`: when each is due again, and its cost. Of more
-- than MAX_WALKED only the last are read, and the first of these takes all tokens: a new job loses at most a part of one.
local function throttled_jobs(key, from, to)
  local first, last = from and '(' .. key .. from or '[' .. key, '(' .. key .. to
  local members = redis.call('ZREVRANGEBYLEX', K.throttled, last, first, 'LIMIT', 0, MAX_WALKED + 1)
  for i = 1, math.floor(#members / 2) do members[i], members[#members + 1 - i] = members[#members + 1 - i], members[i] end
  local found = due_times_of(members)
  if #members > MAX_WALKED and found[1] then found[1][2] = ALL end
  return found
end

-- The rates of this queue during one claim; `close_rate_session` writes the token buckets.
local function rate_session_of(now, rate)
  local session = open_rate_session(now, rate, rate and stored_token_bucket(QUEUE_TOKEN_BUCKET))
  session.token_bucket_of, session.throttled_of = stored_token_bucket, throttled_jobs
  return session
end

-- The charge of a job: `order` is its sort_priority, rank and id.
local function charge_of(r, order)
  local charge = {order = order, cost = 1}
  if has(r.flags, COSTLY) then charge.cost = fields_of(r)[RATE_COST] end
  if has(r.flags, RATED) then
    local fields = fields_of(r)
    charge.key, charge.rate = fields[CONCURRENCY_DIGEST], rate_of(unpack(fields[KEY_RATE], 1, 3))
  end
  return charge
end

-- Write the token buckets, and drop full ones among twice as many: the coordinator alone could not keep up.
local function close_rate_session(session)
  local written = 0
  if session.paid then
    local full_at = ready_at(session.queue_token_bucket, session.rate, session.rate.burst)
    store_token_bucket(QUEUE_TOKEN_BUCKET, session.queue_token_bucket, full_at)
  end
  for key, budget in pairs(session.budgets) do
    if budget.rate then
      store_token_bucket(key, budget.now, ready_at(budget.now, budget.rate, budget.rate.burst))
      written = written + 1
    end
  end
  if written > 0 then drop_full_token_buckets(session.now, 2 * written) end
end

local MAX_THROTTLED, MAX_EXPIRED, MAX_LOOKED = 100, 50, 600
local PORTION, MAX_TEXT = 25, 1000000
local NEEDS_READING = RATED + COSTLY + HAS_DETAILS

local function open_claim(now, runner, number, limit)
  return {now = now, runner = runner, number = number, left = limit, looked = 0, text = 0, expired = 0, seen = {}, dirty_keys = {},
    taken = {}, members = {}, tenant_queues = {}, throttled = {members = {}, due = {}, entries = {}, records = {}, types = {}}}
end

local function leave_tenant_queue(claim, candidate, value)
  if not claim.fair then return end
  claim.tenant_queues[#claim.tenant_queues + 1] = candidate[4] or tenant_member(candidate[1], read_record(value))
end

-- Throttle a job until its key has tokens for it. It keeps its key slot and its rank; no attempt is counted.
local function throttle(claim, candidate, r, moment)
  local throttled, id, count = claim.throttled, candidate[1], 2 * #claim.throttled.members
  clear_reason(id, r)  -- its letter says why
  r.letter, r.version, r.run_at, r.updated = THROTTLED, r.version + 1, moment, claim.now
  throttled.members[#throttled.members + 1] = candidate[3] .. candidate[2]
  throttled.due[count + 1], throttled.due[count + 2] = moment, id
  throttled.entries[count + 1], throttled.entries[count + 2] = 0, throttled_member(id, r)
  throttled.records[count + 1], throttled.records[count + 2] = id, write_record(r)
  throttled.types[r.type] = (throttled.types[r.type] or 0) + 1
  if #throttled.members >= MAX_THROTTLED then claim.left = 0 end
end

local function take(claim, candidate, value)
  local count, runner = #claim.taken, claim.runner
  local _, version, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
  claim.taken[count + 1] = candidate[1]
  claim.taken[count + 2] = struct.pack(HEAD_A, RUNNING, version + 1, attempt + 1, claim.number, claim.now, claim.now, 0,
    #runner) .. runner .. string.sub(value, A_SIZE + length + 1)
  claim.members[count / 2 + 1] = candidate[3] .. candidate[2]
  claim.left = claim.left - 1
end

-- Whether the rates let the candidate start. If not, it is throttled, or the queue has no tokens and the claim ends. `r`
-- is nil for a job that costs one token of the queue, and none of a key.
local function passes_rate(claim, candidate, r, value)
  if not claim.session.rate and not (r and has(r.flags, RATED)) then return true end
  local order = candidate[2]
  local what, moment = check_rate(claim.session, r and charge_of(r, order) or {order = order, cost = 1})
  if what == THROTTLE then
    leave_tenant_queue(claim, candidate, value)
    throttle(claim, candidate, r, moment)
  elseif what == STOP then
    claim.left, claim.retry_at = 0, moment
  end
  return what == PAID
end

-- Remove the entries of a job whose record was removed by hand.
local function drop_missing(claim, candidate)
  if claim.fair and candidate[4] then redis.call('ZREM', K.tenant_queues, candidate[4]) end
  if redis.call('ZREM', K.ready, candidate[3] .. candidate[2]) == 0 then return end
  redis.call('HINCRBY', K.pending_counts, struct.unpack('>I4', candidate[3]), -1)
  add_count(PENDING, -1)
end

-- Remove an entry that a stopped script left: the record decides.
local function drop_stale_entry(claim, candidate)
  if candidate[4] then redis.call('ZREM', K.tenant_queues, candidate[4]) end
  redis.call('ZREM', K.ready, candidate[3] .. candidate[2])
end

-- Start one candidate; returns whether it started. For most jobs flags and expiry are enough: the record is not read.
local function start_one(claim, candidate, value)
  if not value then return drop_missing(claim, candidate) end
  if string.byte(value) ~= PENDING then return drop_stale_entry(claim, candidate) end
  local flags, expires = flags_and_expiry(value)
  if expires > 0 and expires <= claim.now then
    claim.expired = claim.expired + 1
    if claim.expired <= MAX_EXPIRED then
      cancel_waiting(candidate[1], read_record(value), 'expired', claim.now, claim.dirty_keys)
    end
    return false
  end
  local r = bit.band(flags, NEEDS_READING) ~= 0 and read_record(value) or nil
  if not passes_rate(claim, candidate, r, value) then return false end
  leave_tenant_queue(claim, candidate, value)
  if has(flags, HAS_DETAILS) then
    clear_reason(candidate[1], r)
    value = write_record(r)
  end
  take(claim, candidate, value)
  return true
end

-- Start candidates in order, up to a bound of text; returns which of them started, by number.
local function start(claim, candidates)
  local ids, started, values = {}, {}, {}
  for i, candidate in ipairs(candidates) do
    ids[i] = candidate[1]
    claim.seen[candidate[1]] = true
  end
  claim.looked = claim.looked + #ids
  for i in ipairs(ids) do
    if claim.left == 0 then break end
    local at = (i - 1) % PORTION
    if at == 0 then values = redis.call('HMGET', K.jobs, unpack(ids, i, math.min(i + PORTION - 1, #ids))) end
    started[i] = start_one(claim, candidates[i], values[at + 1])
    claim.text = claim.text + #(values[at + 1] or '')
    if claim.text > MAX_TEXT then claim.left = 0 end
  end
  if claim.looked > MAX_LOOKED then claim.left = 0 end
  return started
end

-- Start jobs by sort_priority and rank, as long as the rates allow.
local function start_in_order(claim, heads)
  local next_one = stream(K.ready, heads, portion_of(claim.left, #heads))
  local more = true
  while more and claim.left > 0 do
    local candidates = {}
    while more and #candidates < claim.left do
      local order, head = next_one()
      more = order ~= nil
      local id = order and string.sub(order, -36)
      if id and not claim.seen[id] then candidates[#candidates + 1] = {id, order, head} end
    end
    start(claim, candidates)
  end
end

local function write_throttled(throttled)
  local count = #throttled.members
  if count == 0 then return end
  redis.call('ZREM', K.ready, unpack(throttled.members))
  redis.call('ZADD', K.due, unpack(throttled.due))
  redis.call('ZADD', K.throttled, unpack(throttled.entries))
  redis.call('HSET', K.jobs, unpack(throttled.records))
  for type, jobs in pairs(throttled.types) do redis.call('HINCRBY', K.pending_counts, type, -jobs) end
  add_count(PENDING, -count)
  add_count(THROTTLED, count)
end

-- Write started and throttled jobs, and the token buckets.
local function close_claim(claim)
  close_rate_session(claim.session)
  write_throttled(claim.throttled)
  if #claim.members > 0 then
    record_claim(claim.runner, claim.number, claim.taken, claim.members)
    stop_expiry(claim.taken)
  end
  if #claim.tenant_queues > 0 then redis.call('ZREM', K.tenant_queues, unpack(claim.tenant_queues)) end
  assign_key_slots(claim.dirty_keys, claim.now)
end

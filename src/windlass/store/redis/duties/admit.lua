-- admit: make due jobs pending, the earliest first; jobs with a concurrency key and no key slot wait for their key.
-- Pending jobs of a queue that became fair get tenant queues. Request: the maximum (0: only look), of which a call may
-- do less. Reply: how many were admitted, and how long until the next is due (nothing: none).
--! effect: writes
--! uses: record, indexes, key_queue, details, assign_tenant_queues
local MAX_WEIGHT, HEAVY, TEXT, PORTION = 250, 4, 4096, 25  -- one more for each TEXT bytes
local now = now_micros()

-- The rank of a job that becomes pending is never in the past: see core/jobs/admission.py.
local function rank_of(r) return math.max(r.run_at, now) end

local function admit(id, r, dirty_keys)
  remove_from_indexes(id, r)
  if has(r.flags, HAS_CONCURRENCY_KEY) and r.key_slot < 0 then
    r.letter, r.rank = WAITING_FOR_KEY, r.run_at
    mark_dirty(dirty_keys, r)
  else
    -- A throttled job keeps its rank.
    if r.letter ~= THROTTLED then r.rank = rank_of(r) end
    r.letter = PENDING
  end
  r.version, r.updated = r.version + 1, now
  local details = read_details(id, r)
  if details.reason then
    details.reason = nil
    write_details(id, r, details)
  end
  redis.call('HSET', K.jobs, id, write_record(r))
  add_to_indexes(id, r)
end

local is_delayed = {[SCHEDULED] = true, [FAILED] = true, [THROTTLED] = true}

-- Most jobs were scheduled and have no key or details: these are written together. Their expiry is unchanged.
local function is_plain(r) return r.letter == SCHEDULED and bit.band(r.flags, HAS_CONCURRENCY_KEY + HAS_DETAILS) == 0 end

local function admit_plain(ids, records)
  local values, ready, tenant_queues, by_type = {}, {}, {}, {}
  for i, id in ipairs(ids) do
    local r = records[i]
    r.letter, r.version, r.updated, r.rank = PENDING, r.version + 1, now, rank_of(r)
    values[2 * i - 1], values[2 * i] = id, write_record(r)
    ready[2 * i - 1], ready[2 * i] = 0, ready_member(id, r)
    if fair() then tenant_queues[2 * i - 1], tenant_queues[2 * i] = 0, tenant_member(id, r) end
    by_type[r.type] = (by_type[r.type] or 0) + 1
  end
  redis.call('ZREM', K.due, unpack(ids))
  redis.call('HSET', K.jobs, unpack(values))
  redis.call('ZADD', K.ready, unpack(ready))
  if #tenant_queues > 0 then redis.call('ZADD', K.tenant_queues, unpack(tenant_queues)) end
  add_count(SCHEDULED, -#ids)
  add_count(PENDING, #ids)
  for type, jobs in pairs(by_type) do
    if redis.call('HINCRBY', K.pending_counts, type, jobs) == jobs then publish_hint() end
  end
end

-- Admit jobs up to the work of one call, in which a job that is not plain counts as several; returns how many.
local function admit_all(ids)
  local dirty_keys, plain, records, weight, done = {}, {}, {}, 0, #ids
  local values = {}
  for i, id in ipairs(ids) do
    local at = (i - 1) % PORTION
    if at == 0 then values = redis.call('HMGET', K.jobs, unpack(ids, i, math.min(i + PORTION - 1, #ids))) end
    local value = values[at + 1]
    local r = value and read_record(value)
    if not r or not is_delayed[r.letter] then
      redis.call('ZREM', K.due, id)  -- the job was removed by hand, or a script was stopped: the record decides
    elseif is_plain(r) then
      plain[#plain + 1], records[#records + 1] = id, r
    else
      admit(id, r, dirty_keys)
      weight = weight + HEAVY - 1
    end
    weight = weight + 1 + math.floor(#(value or '') / TEXT)
    if weight >= MAX_WEIGHT then
      done = i
      break
    end
  end
  if #plain > 0 then admit_plain(plain, records) end
  assign_key_slots(dirty_keys, now)
  return done
end

local due = request > 0 and redis.call('ZRANGEBYSCORE', K.due, '-inf', now, 'LIMIT', 0, request) or {}
local admitted = #due > 0 and admit_all(due) or 0
local assigning = assign_tenant_queues()
if assign_stalled(now) or assigning then return {admitted, 0} end
local first = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')
return {admitted, first[2] and first[2] - now}

-- claim: assign pending jobs of this queue to a runner, best first. A repeated claim number returns the same jobs.
-- Request: runner, claim, types, limit (0: only what was claimed before). Reply: ids and records alternately;
-- NO_LEASE; or LIMITED: the queue is limited, or one of the next jobs is not plain, and claim_limited.lua must be
-- called.
--! effect: writes
--! missing_queue: skip
--! uses: record, record_claim, merged_stream, details
--! lazy: stream, write_record, clear_reason
local LIMITED = 'limited'
local UNUSUAL = RATED + HAS_DETAILS
local PORTION, MAX_TEXT, FEW_TYPES = 25, 1000000, 4

local function members_of(head, max_count)
  return redis.call('ZRANGEBYLEX', K.ready, '[' .. head, '(' .. head .. RANGE_END, 'LIMIT', 0, max_count)
end

-- The next members if they are all of one type, else nil. That is common even where several types wait: a group is
-- behind its members, which have another type.
local function members_of_one_type(heads, max_count)
  local first, first_rest, second_rest
  for _, head in ipairs(heads) do
    local member = members_of(head, 1)[1]
    local rest = member and string.sub(member, #head + 1)
    if rest and (not first or comes_before(rest, first_rest)) then
      first, first_rest, second_rest = head, rest, first_rest
    elseif rest and (not second_rest or comes_before(rest, second_rest)) then
      second_rest = rest
    end
  end
  local members = first and members_of(first, max_count) or {}
  if second_rest and (#members < max_count or comes_before(second_rest, string.sub(members[max_count], #first + 1))) then return nil end
  return members
end

-- The members of the next jobs. Usually they are of a single type, and need no merging.
local function next_members(heads, max_count)
  if #heads == 1 then return members_of(heads[1], max_count) end
  local of_one_type = #heads <= FEW_TYPES and members_of_one_type(heads, max_count)
  if of_one_type then return of_one_type end
  local members, next_one = {}, stream(K.ready, heads, portion_of(max_count, #heads))
  for i = 1, max_count do
    local rest, head = next_one()
    if not rest then break end
    members[i] = head .. rest
  end
  return members
end

-- Ids and new records, up to a bound of text, and the positions of records with details; nil if one of them is missing,
-- not pending, or not plain.
local function taken_of(members, runner, claim, now)
  local ids, taken, detailed, values, text = {}, {}, {}, {}, 0
  for i, member in ipairs(members) do ids[i] = string.sub(member, 15) end
  for i in ipairs(ids) do
    local at = (i - 1) % PORTION
    if at == 0 then values = redis.call('HMGET', K.jobs, unpack(ids, i, math.min(i + PORTION - 1, #ids))) end
    local value = values[at + 1]
    if not value then return nil end
    text = text + #value
    if text > MAX_TEXT and i > 1 then break end
    local letter, version, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
    if letter ~= PENDING then return nil end
    local unusual = bit.band(string.byte(value, A_SIZE + length + 4), UNUSUAL)
    if unusual >= HAS_DETAILS then detailed[#detailed + 1] = 2 * i end
    if unusual % HAS_DETAILS ~= 0 then return nil end
    taken[2 * i - 1] = ids[i]
    taken[2 * i] = struct.pack(HEAD_A, RUNNING, version + 1, attempt + 1, claim, now, now, 0, #runner)
      .. runner .. string.sub(value, A_SIZE + length + 1)
  end
  return taken, detailed
end

-- The record without the reason, which a running job does not have.
local function without_reason(id, value)
  local r = read_record(value)
  clear_reason(id, r)
  return write_record(r)
end

local now = now_micros()
local runner, claim, types, limit = unpack(request, 1, 4)
if not has_lease(runner, now) then return NO_LEASE end
local before = claimed_before(runner, claim)
if before then return before end
if limit == 0 then return {} end
local paused, paused_until, limited = unpack(redis.call('HMGET', K.queue, 'paused', 'paused_until', 'limited'), 1, 3)
if is_paused(paused, paused_until, now) then return {} end
if limited == '1' then return LIMITED end
local heads = ready_heads(types)
if #heads == 0 then return {} end
local expires = redis.call('ZRANGE', K.expiring, 0, 0, 'WITHSCORES')[2]
if expires and tonumber(expires) <= now then return LIMITED end
local members = next_members(heads, limit)
if #members == 0 then return members end
local taken, detailed = taken_of(members, runner, claim, now)
if not taken then return LIMITED end
for i = #taken / 2 + 1, #members do members[i] = nil end
allow_write_at_memory_limit()
for _, at in ipairs(detailed) do taken[at] = without_reason(taken[at - 1], taken[at]) end
record_claim(runner, claim, taken, members)
if expires then stop_expiry(taken) end
return taken

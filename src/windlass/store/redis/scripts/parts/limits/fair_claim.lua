-- fair_claim: claim from a fair queue: priority by priority, tenants take turns by their weights.
--! uses: limited_start, merged_stream, fair_turns, byte_order
-- Stored for each sort_priority: the virtual times of tenants, and the tenant up to which the last claim listed them.
-- When weights change, all tenants start anew.
local LISTED = 100
local MAX_STATES, MAX_ENDS = 200, 300
local NEXT = '\1'  -- after a name, gives the first that can come after it: no name has a zero byte

local function read_fairness(sort_priority, weights)
  local value = redis.call('HGET', K.fairness, sort_priority)
  local fairness = value and cmsgpack.unpack(value)
  if not fairness then return {present = 0, ends = {}, after = '', weights = weights} end
  if fairness.weights ~= weights then fairness.ends, fairness.weights = {}, weights end
  return fairness
end

-- The state is bounded: a tenant that is forgotten continues at the present.
local function write_fairness(sort_priority, fairness)
  local ends, kept = {}, 0
  for tenant, moment in pairs(fairness.ends) do
    kept = kept + 1
    if kept > MAX_ENDS then break end
    ends[tenant] = moment
  end
  fairness.ends = ends
  if redis.call('HLEN', K.fairness) > MAX_STATES then redis.call('DEL', K.fairness) end
  redis.call('HSET', K.fairness, sort_priority, cmsgpack.pack(fairness))
end

-- The next sort_priority with jobs in a tenant queue, as two bytes; nil: none.
local function next_priority(after)
  local from = after and '[' .. after .. RANGE_END or '-'
  local member = redis.call('ZRANGEBYLEX', K.tenant_queues, from, '+', 'LIMIT', 0, 1)[1]
  return member and string.sub(member, 1, 2)
end

-- Add tenants with pending jobs at a sort_priority, from `from` to before `ending` (nil: the last). One seek for each
-- finds also the first member of its jobs.
local function tenants(sort_priority, from, ending, max_count, found, firsts)
  local first = '[' .. sort_priority .. from
  local last = ending and '(' .. sort_priority .. ending or '(' .. sort_priority .. RANGE_END
  while #found < max_count do
    local member = redis.call('ZRANGEBYLEX', K.tenant_queues, first, last, 'LIMIT', 0, 1)[1]
    if not member then return end
    local tenant = string.match(member, '^[^%z]*', 3)
    found[#found + 1], firsts[tenant] = tenant, member
    first = '[' .. sort_priority .. tenant .. NEXT
  end
end

-- Whether a listing from `start` to `last` (empty: of all) has passed this tenant.
local function was_passed(tenant, start, last, wrapped)
  if last == '' then return true end
  local from_start, to_last = not comes_before(tenant, start), not comes_before(last, tenant)
  if wrapped then return from_start or to_last end
  return from_start and to_last
end

-- Number tenants in the order of names: those that were listed after the wrap-around come first.
local function numbers_by_name(listed, before_round)
  local numbers = {}
  for i, tenant in ipairs(listed) do numbers[tenant] = i > before_round and i - #listed or i end
  return numbers
end

-- List tenants with pending jobs, from where the last listing ended, wrapping around: the first member of each, and its
-- number in the order of names. A tenant that the listing passed without finding it has no jobs, and is forgotten.
local function list_tenants(sort_priority, fairness, jobs)
  local max_count, start, listed, firsts = math.max(LISTED, jobs), fairness.after, {}, {}
  if start ~= '' then start = start .. NEXT end
  tenants(sort_priority, start, nil, max_count, listed, firsts)
  local before_round = #listed
  local wrapped = start ~= '' and before_round < max_count
  if wrapped then tenants(sort_priority, '', start, max_count, listed, firsts) end
  local last = #listed == max_count and listed[max_count] or ''
  fairness.after = last
  for tenant in pairs(fairness.ends) do
    if not firsts[tenant] and was_passed(tenant, start, last, wrapped) then fairness.ends[tenant] = nil end
  end
  return firsts, numbers_by_name(listed, before_round)
end

local MAX_SORT_PRIORITIES = 20
local FEW_TYPES = 3
local MAX_SEEKS = 900

-- Seeks are bounded, as there may be very many tenants, and types that the runner does not know.
local function seek(claim, times) claim.seeks = claim.seeks + times end
local function may_seek(claim) return claim.left > 0 and claim.seeks < MAX_SEEKS end

-- The prefixes of members of one tenant's jobs, for the types that the runner knows. If these are many, one seek for
-- each type that waits finds them.
local function tenant_heads(claim, head)
  local heads, known = {}, claim.known
  if #known <= FEW_TYPES then
    for i, type in ipairs(known) do heads[i] = head .. type end
    seek(claim, #heads)
    return heads
  end
  local from, last = '[' .. head, '(' .. head .. RANGE_END
  while may_seek(claim) do
    local member = redis.call('ZRANGEBYLEX', K.tenant_queues, from, last, 'LIMIT', 0, 1)[1]
    seek(claim, 1)
    if not member then break end
    local type = string.sub(member, #head + 1, #head + 4)
    if known[type] then
      heads[#heads + 1] = head .. type
      seek(claim, 1)
    end
    from = '[' .. head .. type .. RANGE_END
  end
  return heads
end

-- A stream of a tenant's jobs. If only one of the runner's types waits, the member found with the tenant may be the first.
local function tenant_stream(claim, head, first, share)
  local type, later = claim.known[1], nil
  if #claim.known > 1 or string.sub(first, #head + 1, #head + 4) ~= type then
    return stream(K.tenant_queues, tenant_heads(claim, head), share + 1)
  end
  local heads = {head .. type}
  return function()
    if later then return later() end
    later = function()
      seek(claim, 1)
      later = stream(K.tenant_queues, heads, share, first)
      return later()
    end
    return string.sub(first, #head + 5), heads[1]
  end
end

-- Returns candidates in fair order, their tenants, and the tenants that have no more jobs.
local function next_candidates(claim, sort_priority, order, streams, firsts)
  local shares, candidates, owners, exhausted = {}, {}, {}, {}
  for _, tenant in ipairs(order) do shares[tenant] = (shares[tenant] or 0) + 1 end
  for _, tenant in ipairs(order) do
    if not streams[tenant] then
      if not may_seek(claim) then break end
      streams[tenant] = tenant_stream(claim, sort_priority .. tenant .. '\0', firsts[tenant], shares[tenant])
    end
    local rest, head, id
    repeat
      rest, head = streams[tenant]()
      id = rest and string.sub(rest, -36)
    until not rest or not claim.seen[id]
    if rest then
      candidates[#candidates + 1] = {id, sort_priority .. rest, string.sub(head, -4), head .. rest}
      owners[#owners + 1] = tenant
    else
      exhausted[tenant] = true
    end
  end
  return candidates, owners, exhausted
end

-- Claim from these tenants (tenant → first member), until the claim is full or they have no more jobs.
local function claim_from_tenants(claim, sort_priority, fairness, waiting, by_name)
  local taken, remaining, streams = {}, {}, {}
  for tenant in pairs(waiting) do remaining[tenant] = true end
  while may_seek(claim) and next(remaining) do
    local before = next(taken) and after_taking(fairness, taken, claim.weights, remaining) or fairness
    local order = fair_order(before, remaining, claim.weights, claim.left, by_name)
    local candidates, owners, exhausted = next_candidates(claim, sort_priority, order, streams, waiting)
    local started = start(claim, candidates)
    for i, tenant in ipairs(owners) do
      if started[i] then taken[tenant] = (taken[tenant] or 0) + 1 end
    end
    for tenant in pairs(exhausted) do remaining[tenant] = nil end
  end
  -- Tenants that an earlier listing found, and not this one, count as waiting.
  for tenant in pairs(fairness.ends) do
    if not waiting[tenant] then remaining[tenant] = true end
  end
  local after = after_taking(fairness, taken, claim.weights, remaining)
  fairness.present, fairness.ends = after.present, after.ends
end

-- Claim at one sort_priority: list tenants and claim from them, until the claim is full or all tenants were listed.
local function claim_by_turns(claim, sort_priority)
  local fairness, seen = read_fairness(sort_priority, claim.weighing), {}
  while may_seek(claim) do
    local fresh, any = {}, false
    seek(claim, math.max(LISTED, claim.left))
    local firsts, by_name = list_tenants(sort_priority, fairness, claim.left)
    for tenant, first in pairs(firsts) do
      if not seen[tenant] then fresh[tenant], seen[tenant], any = first, true, true end
    end
    if not any then break end
    claim_from_tenants(claim, sort_priority, fairness, fresh, by_name)
  end
  write_fairness(sort_priority, fairness)
end

-- Claim the highest priority first. Jobs without a tenant queue yet, or whose tenant was not reached, come last.
local function start_fairly(claim, heads)
  claim.known, claim.seeks = {}, 0
  for i, head in ipairs(heads) do claim.known[i], claim.known[head] = head, true end
  local sort_priority, count = next_priority(nil), 0
  while may_seek(claim) and sort_priority and count < MAX_SORT_PRIORITIES do
    claim_by_turns(claim, sort_priority)
    sort_priority, count = next_priority(sort_priority), count + 1
  end
  if claim.left > 0 then start_in_order(claim, heads) end
end

-- fair_claim: claim from a fair queue: priority by priority, tenants take turns by their weights.
--! uses: limited_start, fairness_state, merged_stream
--! keys: tenant_queues
local MAX_SORT_PRIORITIES = 20
local FEW_TYPES = 3
local MAX_SEEKS = 900

-- Seeks are bounded: tenants and types that the runner cannot run may be very many.
local function seek(claim, times) claim.seeks = claim.seeks + times end
local function may_seek(claim) return claim.left > 0 and claim.seeks < MAX_SEEKS end

-- How places of one tenant's jobs begin, of types that the runner knows: where it knows many, a seek for each that waits.
local function tenant_heads(claim, head)
  local heads, known = {}, claim.known
  if #known <= FEW_TYPES then
    for i, type in ipairs(known) do heads[i] = head .. type end
    seek(claim, #heads)
    return heads
  end
  local from, last = '[' .. head, '(' .. head .. STRETCH_END
  while may_seek(claim) do
    local member = redis.call('ZRANGEBYLEX', K.tenant_queues, from, last, 'LIMIT', 0, 1)[1]
    seek(claim, 1)
    if not member then break end
    local type = string.sub(member, #head + 1, #head + 4)
    if known[type] then
      heads[#heads + 1] = head .. type
      seek(claim, 1)
    end
    from = '[' .. head .. type .. STRETCH_END
  end
  return heads
end

-- Candidates in fair order, their tenants, and tenants without more jobs.
local function in_turn(claim, sort_priority, order, streams)
  local shares, candidates, owners, spent = {}, {}, {}, {}
  for _, tenant in ipairs(order) do shares[tenant] = (shares[tenant] or 0) + 1 end
  for _, tenant in ipairs(order) do
    if not streams[tenant] then
      if not may_seek(claim) then break end
      streams[tenant] = stream(K.tenant_queues, tenant_heads(claim, sort_priority .. tenant .. '\0'), shares[tenant] + 1)
    end
    local rest, head
    repeat rest, head = streams[tenant]() until not rest or not claim.seen[string.sub(rest, -36)]
    if rest then
      candidates[#candidates + 1] = {string.sub(rest, -36), sort_priority .. rest, string.sub(head, -4), head .. rest}
      owners[#owners + 1] = tenant
    else
      spent[tenant] = true
    end
  end
  return candidates, owners, spent
end

-- What the claim takes from these tenants, until it is full or all of them have given what they have.
local function claim_from_tenants(claim, sort_priority, fairness, waiting)
  local taken, hopeful, streams = {}, {}, {}
  for tenant in pairs(waiting) do hopeful[tenant] = true end
  while may_seek(claim) and next(hopeful) do
    local before = next(taken) and after_taking(fairness, taken, claim.weights, hopeful) or fairness
    local order = fair_order(before, hopeful, claim.weights, claim.left)
    local candidates, owners, spent = in_turn(claim, sort_priority, order, streams)
    local started = start(claim, candidates)
    for i, tenant in ipairs(owners) do
      if started[i] then taken[tenant] = (taken[tenant] or 0) + 1 end
    end
    for tenant in pairs(spent) do hopeful[tenant] = nil end
  end
  -- Tenants that were listed before and are not now count as waiting.
  for tenant in pairs(fairness.ends) do
    if not waiting[tenant] then hopeful[tenant] = true end
  end
  local after = after_taking(fairness, taken, claim.weights, hopeful)
  fairness.present, fairness.ends = after.present, after.ends
end

-- Until the claim is full, or all listed tenants have given what they have; then the next are listed.
local function claim_by_turns(claim, sort_priority)
  local fairness, seen = read_fairness(sort_priority, claim.weighing), {}
  while may_seek(claim) do
    local fresh, any = {}, false
    seek(claim, math.max(LISTED, claim.left))
    for tenant in pairs(list_tenants(sort_priority, fairness, claim.left)) do
      if not seen[tenant] then fresh[tenant], seen[tenant], any = true, true, true end
    end
    if not any then break end
    claim_from_tenants(claim, sort_priority, fairness, fresh)
  end
  write_fairness(sort_priority, fairness)
end

-- The highest priority first. Jobs without a tenant queue yet, or whose tenant was not reached, start after the others.
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

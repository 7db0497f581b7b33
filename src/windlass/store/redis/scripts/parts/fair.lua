-- fair: priority by priority, tenants take turns by their weights.
-- uses: starts, round, stream
-- keys: lanes
local MOST_URGENCIES = 20
local FEW_TYPES = 3

-- How places of one tenant's jobs begin, of types that the runner knows: where it knows many, a seek for each that waits.
local function lane_heads(lane, known)
  local heads = {}
  if #known <= FEW_TYPES then
    for i, type in ipairs(known) do heads[i] = lane .. type end
    return heads
  end
  local from, last = '[' .. lane, '(' .. lane .. STRETCH_END
  while true do
    local member = redis.call('ZRANGEBYLEX', K.lanes, from, last, 'LIMIT', 0, 1)[1]
    if not member then return heads end
    local type = string.sub(member, #lane + 1, #lane + 4)
    if known[type] then heads[#heads + 1] = lane .. type end
    from = '[' .. lane .. type .. STRETCH_END
  end
end

-- One after the other, as the turns come: candidates and whose they are; and who has no more than that.
local function in_turn(claim, urgency, order, lanes)
  local shares, candidates, owners, spent = {}, {}, {}, {}
  for _, tenant in ipairs(order) do shares[tenant] = (shares[tenant] or 0) + 1 end
  for _, tenant in ipairs(order) do
    if not lanes[tenant] then
      lanes[tenant] = stream(K.lanes, lane_heads(urgency .. tenant .. '\0', claim.known), shares[tenant] + 1)
    end
    local rest, head
    repeat rest, head = lanes[tenant]() until not rest or not claim.seen[string.sub(rest, -36)]
    if rest then
      candidates[#candidates + 1] = {string.sub(rest, -36), urgency .. rest, string.sub(head, -4), head .. rest}
      owners[#owners + 1] = tenant
    else
      spent[tenant] = true
    end
  end
  return candidates, owners, spent
end

-- What the claim takes from these tenants, until it is full or all of them have given what they have.
local function share(claim, urgency, round, waiting)
  local taken, hopeful, lanes = {}, {}, {}
  for tenant in pairs(waiting) do hopeful[tenant] = true end
  while claim.left > 0 and next(hopeful) do
    local before = next(taken) and took(round, taken, claim.weights, hopeful) or round
    local order = turns(before, hopeful, claim.weights, claim.left)
    local candidates, owners, spent = in_turn(claim, urgency, order, lanes)
    local started = start(claim, candidates)
    for i, tenant in ipairs(owners) do
      if started[i] then taken[tenant] = (taken[tenant] or 0) + 1 end
    end
    for tenant in pairs(spent) do hopeful[tenant] = nil end
  end
  -- Who is not listed now, and was before, has jobs waiting as far as is known.
  for tenant in pairs(round.ends) do
    if not waiting[tenant] then hopeful[tenant] = true end
  end
  local after = took(round, taken, claim.weights, hopeful)
  round.present, round.ends = after.present, after.ends
end

-- Until the claim is full, or everybody listed has given what he has; then the next are listed.
local function take_turns(claim, urgency)
  local round, seen = read_round(urgency, claim.weighing), {}
  while claim.left > 0 do
    local fresh, any = {}, false
    for tenant in pairs(list_tenants(urgency, round, claim.left)) do
      if not seen[tenant] then fresh[tenant], seen[tenant], any = true, true, true end
    end
    if not any then break end
    share(claim, urgency, round, fresh)
  end
  write_round(urgency, round)
end

-- The highest priority first, and there whose turn it is. Who has no lane yet comes after those who have.
local function start_fairly(claim, heads)
  claim.known = {}
  for i, head in ipairs(heads) do claim.known[i], claim.known[head] = head, true end
  local urgency, count = next_urgency(nil), 0
  while claim.left > 0 and urgency and count < MOST_URGENCIES do
    take_turns(claim, urgency)
    urgency, count = next_urgency(urgency), count + 1
  end
  if claim.left > 0 then start_in_line(claim, heads) end
end

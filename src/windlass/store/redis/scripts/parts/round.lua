-- round: whose turn it is at one urgency of a fair queue, as it is kept from claim to claim: the standing, and the tenant
-- up to whom they were listed. By other weights than those it was reckoned by, everybody begins anew.
-- uses: turns, stream, order
-- keys: lanes turns
local LISTED = 100
local MOST_ROUNDS, MOST_ENDS = 200, 300
local NEXT = '\1'  -- after a name, gives the first that can come after it: no name has a zero byte

local function read_round(urgency, weights)
  local value = redis.call('HGET', K.turns, urgency)
  local round = value and cmsgpack.unpack(value)
  if not round then return {present = 0, ends = {}, after = '', weights = weights} end
  if round.weights ~= weights then round.ends, round.weights = {}, weights end
  return round
end

-- Bounded, whatever there is: who is forgotten stands at the present.
local function write_round(urgency, round)
  local ends, kept = {}, 0
  for tenant, moment in pairs(round.ends) do
    kept = kept + 1
    if kept > MOST_ENDS then break end
    ends[tenant] = moment
  end
  round.ends = ends
  if redis.call('HLEN', K.turns) > MOST_ROUNDS then redis.call('DEL', K.turns) end
  redis.call('HSET', K.turns, urgency, cmsgpack.pack(round))
end

-- The next urgency at which anybody waits in a lane, as two bytes; nil: none.
local function next_urgency(after)
  local from = after and '[' .. after .. STRETCH_END or '-'
  local member = redis.call('ZRANGEBYLEX', K.lanes, from, '+', 'LIMIT', 0, 1)[1]
  return member and string.sub(member, 1, 2)
end

-- Tenants who have jobs waiting at an urgency, from `from` up to but without `ending` (nil: to the last), one seek for each.
local function tenants(urgency, from, ending, most, found)
  local first = '[' .. urgency .. from
  local last = ending and '(' .. urgency .. ending or '(' .. urgency .. STRETCH_END
  while #found < most do
    local member = redis.call('ZRANGEBYLEX', K.lanes, first, last, 'LIMIT', 0, 1)[1]
    if not member then return end
    local tenant = string.match(member, '^[^%z]*', 3)
    found[#found + 1] = tenant
    first = '[' .. urgency .. tenant .. NEXT
  end
end

-- Whether a listing from `start` to `last`, or of all if there is no last, has come past this one.
local function lies_between(tenant, start, last, wrapped)
  if last == '' then return true end
  local from_start, to_last = not comes_before(tenant, start), not comes_before(last, tenant)
  if wrapped then return from_start or to_last end
  return from_start and to_last
end

-- Tenants who wait, from where the last listing ended, and round to there. Who should have been listed and was not has
-- nothing waiting, and is forgotten.
local function list_tenants(urgency, round, jobs)
  local most, start, listed = math.max(LISTED, jobs), round.after, {}
  if start ~= '' then start = start .. NEXT end
  tenants(urgency, start, nil, most, listed)
  local wrapped = start ~= '' and #listed < most
  if wrapped then tenants(urgency, '', start, most, listed) end
  local last = #listed == most and listed[most] or ''
  round.after = last
  local found = {}
  for _, tenant in ipairs(listed) do found[tenant] = true end
  for tenant in pairs(round.ends) do
    if not found[tenant] and lies_between(tenant, start, last, wrapped) then round.ends[tenant] = nil end
  end
  return found
end

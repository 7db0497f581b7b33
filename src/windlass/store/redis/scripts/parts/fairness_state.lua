-- fairness_state: virtual times of tenants at one sort_priority of a fair queue, kept from claim to claim, and the
-- tenant up to which they were listed. With changed weights all start anew.
--! uses: fair_turns, merged_stream, byte_order
--! keys: tenant_queues, fairness
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

-- Bounded: a tenant that is forgotten continues at the present.
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
  local from = after and '[' .. after .. STRETCH_END or '-'
  local member = redis.call('ZRANGEBYLEX', K.tenant_queues, from, '+', 'LIMIT', 0, 1)[1]
  return member and string.sub(member, 1, 2)
end

-- Tenants with pending jobs at a sort_priority, from `from` to before `ending` (nil: the last), one seek for each.
local function tenants(sort_priority, from, ending, max_count, found)
  local first = '[' .. sort_priority .. from
  local last = ending and '(' .. sort_priority .. ending or '(' .. sort_priority .. STRETCH_END
  while #found < max_count do
    local member = redis.call('ZRANGEBYLEX', K.tenant_queues, first, last, 'LIMIT', 0, 1)[1]
    if not member then return end
    local tenant = string.match(member, '^[^%z]*', 3)
    found[#found + 1] = tenant
    first = '[' .. sort_priority .. tenant .. NEXT
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
local function list_tenants(sort_priority, fairness, jobs)
  local max_count, start, listed = math.max(LISTED, jobs), fairness.after, {}
  if start ~= '' then start = start .. NEXT end
  tenants(sort_priority, start, nil, max_count, listed)
  local wrapped = start ~= '' and #listed < max_count
  if wrapped then tenants(sort_priority, '', start, max_count, listed) end
  local last = #listed == max_count and listed[max_count] or ''
  fairness.after = last
  local found = {}
  for _, tenant in ipairs(listed) do found[tenant] = true end
  for tenant in pairs(fairness.ends) do
    if not found[tenant] and lies_between(tenant, start, last, wrapped) then fairness.ends[tenant] = nil end
  end
  return found
end

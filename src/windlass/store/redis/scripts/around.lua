-- around: what is around a waiting job of this queue: all that may hold it up. The request is its id; urgency and rank by
-- which it stands among pending jobs; the digest of its key (false: none), its urgency and rank in that line (false: it
-- is not in line); its tenant in a fair queue (false: the queue is not fair); how many tenants and how many jobs to name.
-- The answer is the counts {at a higher priority, before it at its own, in its lane, beside it, in line before it,
-- running, slots held}, the tenants, what has run longest, who has its key's slots, and the buckets of queue and key.
-- uses: call, record, claims, order
-- keys: queue counts jobs ready pend lanes line slots gates
local problem = strange()
if problem then return problem end
local id, urgency, rank, key, order, line_rank, lane, most_tenants, most_named = unpack(request, 1, 9)
local MOST_READ, CLAIMS, LAST = 500, 10, string.rep('\255', 11)
local level = struct.pack('>I2', urgency + LEVEL)
local place = struct.pack('>I8', rank) .. id

local function present_types()
  local heads = {}
  local pend = redis.call('HGETALL', K.pend)
  for i = 1, #pend, 2 do
    if tonumber(pend[i + 1]) > 0 then heads[#heads + 1] = struct.pack('>I4', tonumber(pend[i])) end
  end
  return heads
end

-- Indexes by member count a range without walking it.
local function between(key, from, to) return redis.call('ZLEXCOUNT', key, '[' .. from, '(' .. to) end

local sooner, before, in_lane, beside = 0, 0, 0, 0
for _, type in ipairs(present_types()) do
  sooner = sooner + between(K.ready, type, type .. level)
  before = before + between(K.ready, type .. level, type .. level .. place)
  if lane then
    local head = level .. lane .. '\0' .. type
    in_lane = in_lane + between(K.lanes, head, head .. place)
    beside = beside + between(K.ready, type .. level, type .. level .. LAST)
      - between(K.ready, type .. level .. place, type .. level .. place .. '\0')
  end
end

local function neighbours()
  local tenants, from = {}, '[' .. level
  while #tenants < most_tenants do
    local member = redis.call('ZRANGEBYLEX', K.lanes, from, '(' .. level .. '\255', 'LIMIT', 0, 1)[1]
    if not member then break end
    local tenant = string.sub(member, 3, string.find(member, '\0', 3, true) - 1)
    tenants[#tenants + 1] = tenant
    from = '(' .. level .. tenant .. '\1'
  end
  return tenants
end

-- Of those who have something: id, letter, since when, run_at, runner.
local function holder(id)
  local value = redis.call('HGET', K.jobs, id)
  if not value then return nil end
  local r = read_record(value)
  return {id, r.letter, r.letter == RUNNING and r.claimed or r.updated, r.run_at, r.runner}
end

local function held_ids()
  local ids, looked = {}, 0
  while #ids < MOST_READ do
    local claims = redis.call('ZRANGE', K.held, looked, looked + CLAIMS - 1)
    for _, member in ipairs(claims) do
      for _, each in ipairs(ids_of_claim(member)) do ids[#ids + 1] = each end
    end
    looked = looked + #claims
    if #claims < CLAIMS then break end
  end
  return ids
end

local function longest_running()
  local found = {}
  for i, each in ipairs(held_ids()) do
    if i > MOST_READ then break end
    local one = holder(each)
    if one and one[2] == RUNNING then found[#found + 1] = one end
  end
  table.sort(found, function(a, b) return a[3] < b[3] or a[3] == b[3] and comes_before(a[1], b[1]) end)
  for i = #found, most_named + 1, -1 do found[i] = nil end
  return found
end

local function slot_holders()
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', K.slots, '[' .. key, '(' .. key .. LAST, 'LIMIT', 0, most_named)) do
    found[#found + 1] = holder(string.sub(member, -36))
  end
  return found
end

local in_line, slots, holders = 0, 0, {}
if order then
  in_line = between(K.line, key, key .. struct.pack('>I2I8', order + LEVEL, line_rank) .. id)
  slots = between(K.slots, key, key .. LAST)
  holders = slot_holders()
end
local running = tonumber(redis.call('HGET', K.counts, string.char(RUNNING)) or 0)
return {
  {sooner, before, in_lane, beside, in_line, running, slots},
  lane and neighbours() or {},
  longest_running(),
  holders,
  redis.call('HGET', K.gates, '') or '',
  key and redis.call('HGET', K.gates, key) or '',
}

-- why_facts: everything that may delay a waiting job. Request: its id; sort_priority and rank among pending jobs;
-- concurrency digest (false: none), sort_priority and rank among jobs that wait for the key (false: it does not wait);
-- its tenant in a fair queue (false: not fair); how many tenants and jobs to name. Reply: counts {jobs at a higher
-- priority, before it at its own, before it in its tenant queue, all others at its own, before it for its key, running,
-- key slots taken}, tenants, longest running jobs, holders of its key slots, token buckets of queue and key.
--! effect: reads
--! uses: record, indexes, claims, byte_order
local id, sort_priority, rank, key, order, waiting_rank, tenant_queue, max_tenants, max_named = unpack(request, 1, 9)
local MAX_READ, LAST = 500, string.rep('\255', 11)
local level = struct.pack('>I2', sort_priority + LEVEL)
local rest = struct.pack('>I8', rank) .. id

-- The size of a range; counting does not read the members.
local function between(key, from, to) return redis.call('ZLEXCOUNT', key, '[' .. from, '(' .. to) end

local sooner, before, tenant_before, beside = 0, 0, 0, 0
for _, number in ipairs(pending_types()) do
  local type = struct.pack('>I4', number)
  sooner = sooner + between(K.ready, type, type .. level)
  before = before + between(K.ready, type .. level, type .. level .. rest)
  if tenant_queue then
    local head = level .. tenant_queue .. '\0' .. type
    tenant_before = tenant_before + between(K.tenant_queues, head, head .. rest)
    beside = beside + between(K.ready, type .. level, type .. level .. LAST)
      - between(K.ready, type .. level .. rest, type .. level .. rest .. '\0')
  end
end

local function waiting_tenants()
  local tenants, from = {}, '[' .. level
  while #tenants < max_tenants do
    local member = redis.call('ZRANGEBYLEX', K.tenant_queues, from, '(' .. level .. '\255', 'LIMIT', 0, 1)[1]
    if not member then break end
    local tenant = string.sub(member, 3, string.find(member, '\0', 3, true) - 1)
    tenants[#tenants + 1] = tenant
    from = '(' .. level .. tenant .. '\1'
  end
  return tenants
end

-- A job: id, letter, since when, run_at, runner.
local function holder(id)
  local value = redis.call('HGET', K.jobs, id)
  if not value then return nil end
  local r = read_record(value)
  return {id, r.letter, r.letter == RUNNING and r.claimed or r.updated, r.run_at, r.runner}
end

local function longest_running()
  local found = {}
  for i, each in ipairs((held_ids(MAX_READ))) do
    if i > MAX_READ then break end
    local one = holder(each)
    if one and one[2] == RUNNING then found[#found + 1] = one end
  end
  table.sort(found, function(a, b) return a[3] < b[3] or a[3] == b[3] and comes_before(a[1], b[1]) end)
  for i = #found, max_named + 1, -1 do found[i] = nil end
  return found
end

local function key_slot_holders()
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', K.key_slots, '[' .. key, '(' .. key .. LAST, 'LIMIT', 0, max_named)) do
    found[#found + 1] = holder(string.sub(member, -36))
  end
  return found
end

local key_before, key_slots, holders = 0, 0, {}
if order then
  key_before = between(K.waiting_for_key, key, key .. struct.pack('>I2I8', order + LEVEL, waiting_rank) .. id)
  key_slots = between(K.key_slots, key, key .. LAST)
  holders = key_slot_holders()
end
local running = tonumber(redis.call('HGET', K.counts, string.char(RUNNING)) or 0)
return {
  {sooner, before, tenant_before, beside, key_before, running, key_slots},
  tenant_queue and waiting_tenants() or {},
  longest_running(),
  holders,
  redis.call('HGET', K.token_buckets, '') or '',
  key and redis.call('HGET', K.token_buckets, key) or '',
}

-- assign_tenant_queues: give the pending jobs of a queue that became fair their tenant queues, some at a time; new
-- jobs have them from the start. The field `assigning_tenants` of the queue is 1, or the last member that was read.
--! uses: record, indexes
local MAX_ASSIGNED = 250

-- Assign one portion; returns whether there is more.
local function assign_tenant_queues()
  local after = redis.call('HGET', K.queue, 'assigning_tenants')
  if not after then return false end
  local from = after == '1' and '-' or '(' .. after
  local members = redis.call('ZRANGEBYLEX', K.ready, from, '+', 'LIMIT', 0, MAX_ASSIGNED)
  local ids, entries = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, -36) end
  for i, value in ipairs(#ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}) do
    if value then
      entries[#entries + 1] = 0
      entries[#entries + 1] = tenant_member(ids[i], read_record(value))
    end
  end
  if #entries > 0 then redis.call('ZADD', K.tenant_queues, unpack(entries)) end
  if #members == MAX_ASSIGNED then
    redis.call('HSET', K.queue, 'assigning_tenants', members[#members])
    return true
  end
  redis.call('HDEL', K.queue, 'assigning_tenants')
  return false
end

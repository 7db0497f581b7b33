-- audit_jobs: check that jobs are in the indexes of their status, some at a time. Request: the id to continue
-- after (empty: the start). Reply: the last id (empty: the end), how many, and {id, index} of missing entries.
--! effect: reads
--! uses: record, index_entries, claims
--! keys: ids, ready, tenant_queues, due, throttled, expiring, drop_times, by_status, failures, waiting_for_key, key_slots, parked
local STEP = 250
local from = request[1]
local ids = redis.call('ZRANGEBYLEX', K.ids, from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, STEP)
local assigning_tenants = redis.call('HEXISTS', K.queue, 'assigning_tenants') == 1
local lost = {}

local function check(id, r)
  for _, entry in ipairs(index_entries(id, r)) do
    local index, _, member = unpack(entry)
    local is_expected = index ~= 'tenant_queues' or not assigning_tenants
    if is_expected and not redis.call('ZSCORE', K[index], member) then lost[#lost + 1] = {id, index} end
  end
  if r.letter == RUNNING and redis.call('HEXISTS', K.claim_counts, claim_head(r.runner, r.claim)) == 0 then
    lost[#lost + 1] = {id, 'claim_counts'}
  end
end

for _, id in ipairs(ids) do
  local value = redis.call('HGET', K.jobs, id)
  if value then check(id, read_record(value)) else lost[#lost + 1] = {id, 'jobs'} end
end
return {#ids == STEP and ids[#ids] or '', #ids, lost}

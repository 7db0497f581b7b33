-- repair_index: remove entries of one index that do not match a record, some at a time. Request: the index and the
-- position to continue at. Reply: the next position (-1: the end), and how many were removed.
--! effect: writes
--! uses: record, index_entries, claims
--! keys: ids, ready, tenant_queues, due, throttled, expiring, drop_times, by_status, failures, waiting_for_key, key_slots, parked, held
local index, from = request[1], request[2]
local STEP = index == 'held' and 2 or 100  -- a claim has some hundreds of jobs

-- Recount the running jobs of a claim; without any, remove the claim. Returns whether it stays.
local function recount_claim(member)
  local runner, claim, head = claim_of(member)
  local running = 0
  for _, id in ipairs(ids_of_claim(member)) do
    local value = redis.call('HGET', K.jobs, id)
    local r = value and readable(value)
    if r and r.letter == RUNNING and r.claim == claim and r.runner == runner then running = running + 1 end
  end
  if running == 0 then drop_claim(head) else redis.call('HSET', K.claim_counts, head, running) end
  return running > 0
end

local function stays(member)
  if index == 'held' then return recount_claim(member) end
  local id = string.sub(member, -36)
  local value = redis.call('HGET', K.jobs, id)
  if not value then return false end
  local r = readable(value)
  for _, entry in ipairs(r and index_entries(id, r) or {}) do
    if entry[1] == index and entry[3] == member then return true end
  end
  return not r
end

local members, gone = redis.call('ZRANGE', K[index], from, from + STEP - 1), 0
for _, member in ipairs(members) do
  if not stays(member) then
    redis.call('ZREM', K[index], member)
    gone = gone + 1
  end
end
return {#members < STEP and -1 or from + STEP - gone, gone}

-- repair_index: remove entries of one index that do not match a record, some at a time. Request: the index and the
-- rank to continue at. Reply: the next rank (-1: the end), and how many went.
--! effect: writes
--! memory: any
--! uses: queue_call, record, indexes, readable
--! keys: queue, jobs, ids, ready, tenant_queues, due, throttled, waiting_for_key, parked, drop_times, by_status, failures, slots, expiring, held, claim_counts
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
local place, from = request[1], request[2]
local STEP = place == 'held' and 2 or 100  -- a claim has some hundreds of jobs

local is_delayed = {[SCHEDULED] = true, [FAILED] = true, [THROTTLED] = true}
local is_failing = {[FAILED] = true, [DEAD] = true}
local is_rare = {[FAILED] = true, [DEAD] = true, [CANCELLED] = true}
local belongs = {
  ids = function() return true end,
  ready = function(r, id, member) return r.letter == PENDING and member == ready_member(id, r) end,
  tenant_queues = function(r, id, member) return r.letter == PENDING and fair() and member == tenant_member(id, r) end,
  due = function(r) return is_delayed[r.letter] end,
  throttled = function(r, id, member) return r.letter == THROTTLED and member == throttled_member(id, r) end,
  waiting_for_key = function(r, id, member) return r.letter == WAITING_FOR_KEY and member == waiting_member(id, r) end,
  parked = function(r, id, member) return r.letter == PARKED and member == parked_member(id, r) end,
  drop_times = function(r) return finished_letters[r.letter] end,
  by_status = function(r, id, member) return is_rare[r.letter] and member == string.char(r.letter) .. id end,
  failures = function(r) return is_failing[r.letter] end,
  slots = function(r, id, member) return r.slot >= 0 and member == slot_member(id, r) end,
  expiring = function(r) return r.expires > 0 and waiting_letters[r.letter] end,
}

-- A claim is over when nothing of it runs.
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
  if place == 'held' then return recount_claim(member) end
  local id = string.sub(member, -36)
  local value = redis.call('HGET', K.jobs, id)
  if not value then return false end
  local r = readable(value)
  return not r or belongs[place](r, id, member)
end

local members, gone = redis.call('ZRANGE', K[place], from, from + STEP - 1), 0
for _, member in ipairs(members) do
  if not stays(member) then
    redis.call('ZREM', K[place], member)
    gone = gone + 1
  end
end
return {#members < STEP and -1 or from + STEP - gone, gone}

-- record_claim: pending jobs become running under the number of a claim, if the runner has a lease.
--! uses: record, claims
-- Ids and records of running jobs that were claimed under the same number before; nil: there was no such claim.
local function claimed_before(runner, claim)
  local before = claim_member(claim_head(runner, claim))
  if not before then return nil end
  local answer = {}
  for _, id in ipairs(ids_of_claim(before)) do
    local value = redis.call('HGET', K.jobs, id)
    if value then
      local letter, _, _, number, _, _, _, length = struct.unpack(HEAD_A, value)
      if letter == RUNNING and number == claim and string.sub(value, A_SIZE + 1, A_SIZE + length) == runner then
        answer[#answer + 1], answer[#answer + 2] = id, value
      end
    end
  end
  return answer
end

local function is_paused(paused, paused_until, now)
  return paused == '1' and (not paused_until or tonumber(paused_until) > now)
end

-- The prefixes in `ready` of those of these types that have pending jobs.
local function ready_heads(types)
  local heads = {}
  if #types == 0 then return heads end
  local numbers = {}
  for _, number in ipairs(redis.call('HMGET', K.types, unpack(types))) do
    if number then numbers[#numbers + 1] = number end
  end
  if #numbers == 0 then return heads end
  for i, jobs in ipairs(redis.call('HMGET', K.pending_counts, unpack(numbers))) do
    if jobs and tonumber(jobs) > 0 then heads[#heads + 1] = struct.pack('>I4', numbers[i]) end
  end
  return heads
end

-- Write claimed jobs: `taken` has ids and records alternately, `members` are what they have in `ready`.
local function record_claim(runner, claim, taken, members)
  local ids, by_type = {}, {}
  for i, member in ipairs(members) do
    ids[i] = taken[2 * i - 1]
    local type = string.sub(member, 1, 4)
    by_type[type] = (by_type[type] or 0) + 1
  end
  redis.call('ZREM', K.ready, unpack(members))
  redis.call('HSET', K.jobs, unpack(taken))
  for type, jobs in pairs(by_type) do redis.call('HINCRBY', K.pending_counts, struct.unpack('>I4', type), -jobs) end
  redis.call('HINCRBY', K.counts, string.char(PENDING), -#ids)
  redis.call('HINCRBY', K.counts, string.char(RUNNING), #ids)
  local head = claim_head(runner, claim)
  redis.call('ZADD', K.held, 0, head .. table.concat(ids))
  redis.call('HSET', K.claim_counts, head, #ids)
end

-- Remove started jobs from `expiring`: they do not expire any more.
local function stop_expiry(taken)
  local ids = {}
  for i = 1, #taken, 2 do ids[#ids + 1] = taken[i] end
  redis.call('ZREM', K.expiring, unpack(ids))
end

-- Whether a runner may claim in this queue, by the queue's copy of its lease. Without one the reply is
-- NO_LEASE, and the caller reads the global lease (leases.py, `allow_runner`) before it gives up.
local NO_LEASE = 'no lease'

local function has_lease(runner, now)
  local valid = redis.call('HGET', K.leases, runner)
  return valid and tonumber(valid) > now
end

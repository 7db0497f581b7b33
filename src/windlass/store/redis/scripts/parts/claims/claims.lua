-- claims: jobs that were claimed together. A member of `held` is runner, claim and ids, so that the claims of a
-- runner are adjacent; its prefix, the head, is the field of `claim_counts`.
--! uses: record
local ID_SIZE = 36
local CLAIM = '>I8'

local function claim_head(runner, claim) return runner .. '\0' .. struct.pack(CLAIM, claim) end

-- The member with this head; the head is followed by a hexadecimal digit of an id.
local function claim_member(head)
  return redis.call('ZRANGEBYLEX', K.held, '[' .. head, '(' .. head .. '\255', 'LIMIT', 0, 1)[1]
end

local function drop_claim(head)
  redis.call('HDEL', K.claim_counts, head)
  redis.call('ZREMRANGEBYLEX', K.held, '[' .. head, '(' .. head .. '\255')
end

-- Subtract jobs from the running ones of a claim; without any left, remove the claim.
local function release_claim(head, jobs)
  if redis.call('HINCRBY', K.claim_counts, head, -jobs) <= 0 then drop_claim(head) end
end

-- At most `max_count` claims of a runner with numbers after `after` (-1: from the first).
local function claims_of(runner, after, max_count)
  local from = after < 0 and '[' .. runner .. '\0' or '(' .. claim_head(runner, after) .. '\255'
  return redis.call('ZRANGEBYLEX', K.held, from, '(' .. runner .. '\1', 'LIMIT', 0, max_count)
end

-- The runner, claim number and head of a member.
local function claim_of(member)
  local ends = string.find(member, '\0', 1, true)
  return string.sub(member, 1, ends - 1), struct.unpack(CLAIM, member, ends + 1), string.sub(member, 1, ends + 8)
end

-- The ids of a claim; some jobs may have ended since.
local function ids_of_claim(member)
  local _, _, head = claim_of(member)
  local ids = {}
  for at = #head + 1, #member, ID_SIZE do ids[#ids + 1] = string.sub(member, at, at + ID_SIZE - 1) end
  return ids
end

-- Ids of all claims, until there are more than `max_count`, and whether these are all. Some jobs may have ended since.
local CLAIMS_READ = 10
local function held_ids(max_count)
  local ids, at = {}, 0
  while #ids <= max_count do
    local claims = redis.call('ZRANGE', K.held, at, at + CLAIMS_READ - 1)
    for _, member in ipairs(claims) do
      for _, id in ipairs(ids_of_claim(member)) do ids[#ids + 1] = id end
    end
    if #claims < CLAIMS_READ then return ids, true end
    at = at + CLAIMS_READ
  end
  return ids, false
end

-- Call `with` for each job of a claim that is still running, with its id, record and value. Returns how many were read,
-- and the bytes of their records.
local function each_of_claim(member, with)
  local runner, claim = claim_of(member)
  local ids = ids_of_claim(member)
  local text = 0
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    text = text + #(value or '')
    local r = value and read_record(value)
    if r and r.letter == RUNNING and r.runner == runner and r.claim == claim then with(ids[i], r, value) end
  end
  return #ids, text
end

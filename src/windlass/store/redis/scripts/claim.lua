-- claim: hold pending jobs of this queue for a runner, best first. Asking again with the same number gives the same jobs.
-- The request is runner, claim, types, limit. The answer is ids and records, one after the other; NO_LEASE; or RULED: the
-- queue has rules, or one of the next jobs is not plain, and claim_ruled.lua must be asked. A limit of 0 asks only what was
-- taken before.
-- makes no queue
-- uses: call, record, lease, claimed, stream
-- keys: queue jobs ready expiring
local RULED = 'ruled'
local UNUSUAL = RATED + MORE

-- The places of the next jobs: of one type, as most queues have it, they need no merging.
local function next_places(heads, most)
  if #heads == 1 then
    return redis.call('ZRANGEBYLEX', K.ready, '[' .. heads[1], '(' .. heads[1] .. STRETCH_END, 'LIMIT', 0, most)
  end
  local members, next_one = {}, stream(K.ready, heads, portion_of(most, #heads))
  for i = 1, most do
    local rest, head = next_one()
    if not rest then break end
    members[i] = head .. rest
  end
  return members
end

-- Ids and records as the runner will hold them; nil, if one of them is not plain, or not there.
local function taken_of(members, runner, claim, now)
  local ids, taken = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, 15) end
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    if not value then return nil end
    local letter, version, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
    if bit.band(string.byte(value, A_SIZE + length + 2), UNUSUAL) ~= 0 then return nil end
    taken[2 * i - 1] = ids[i]
    taken[2 * i] = struct.pack(HEAD_A, RUNNING, version + 1, attempt + 1, claim, now, now, 0, #runner)
      .. runner .. string.sub(value, A_SIZE + length + 1)
  end
  return taken
end

local problem = strange()
if problem then return problem end
local now = the_time()
local runner, claim, types, limit = unpack(request, 1, 4)
if not has_lease(runner, now) then return NO_LEASE end
local before = claimed_before(runner, claim)
if before then return before end
if limit == 0 then return {} end
local paused, paused_until, ruled = unpack(redis.call('HMGET', K.queue, 'paused', 'paused_until', 'ruled'), 1, 3)
if is_paused(paused, paused_until, now) then return {} end
if ruled == '1' then return RULED end
local heads = ready_heads(types)
if #heads == 0 then return {} end
local expires = redis.call('ZRANGE', K.expiring, 0, 0, 'WITHSCORES')[2]
if expires and tonumber(expires) <= now then return RULED end
local members = next_places(heads, limit)
if #members == 0 then return members end
local taken = taken_of(members, runner, claim, now)
if not taken then return RULED end
hold(runner, claim, taken, members)
if expires then start_in_time(taken) end
return taken

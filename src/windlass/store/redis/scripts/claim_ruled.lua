-- claim_ruled: hold pending jobs of a queue that has rules, or in which some have expired or wait for a rate: claim.lua, under
-- all terms. The request is runner, claim, types, limit, the limit of the whole claim, and how many of that can start at
-- once and are not taken yet (nothing: all). The answer is NO_LEASE; or the store's time, for how long a claim would be in
-- vain (-1: nobody can say so), the rate by which that is, whether it was cut short (1: by jobs that had expired, 2: by jobs
-- that stepped aside), and ids and records, one after the other.
-- makes no queue
-- uses: call, record, lease, claimed, stream, starts, fair, laning
-- keys: queue counts expiring
local FAR = 10  -- a limit is far if it leaves room for so many claims like this one: then jobs may be claimed ahead
local HANDS_FULL = 20000  -- for so long a runner that could only have claimed ahead need not ask again
local MOST_TAKEN_FAIRLY = 100  -- each tenant is a seek of its own
local SETTINGS = {'paused', 'paused_until', 'max_concurrency', 'rate_tokens', 'rate_period', 'rate_burst', 'rate_limit',
  'fair', 'weights', 'laning'}

local problem = strange()
if problem then return problem end
local now = the_time()
local runner, number, types, limit, asked, free = unpack(request, 1, 6)
if not has_lease(runner, now) then return NO_LEASE end
local before = claimed_before(runner, number)
if before then return {now, -1, '', 0, before} end
local settings = redis.call('HMGET', K.queue, unpack(SETTINGS))
if is_paused(settings[1], settings[2], now) then return {now, -1, '', 0, {}} end
local most, rate = tonumber(settings[3]), rate_of(settings[4], settings[5], settings[6])

local claim = open_claim(now, runner, number, limit)
claim.fair, claim.till = settings[8] == '1', till_of(now, rate)
if claim.fair then claim.left = math.min(limit, MOST_TAKEN_FAIRLY) end
claim.weighing = settings[9] or ''
claim.weights = settings[9] and cjson.decode(settings[9]) or {}

-- How many may be taken: what the limits leave, and nothing ahead where one is near.
local function bound()
  local near = false
  if most then
    local room = math.max(0, most - (tonumber(redis.call('HGET', K.counts, string.char(RUNNING))) or 0))
    near = room < FAR * asked
    claim.left = math.min(claim.left, room)
  end
  if rate then
    local tokens = claim.till.own.whole
    near = near or tokens < FAR * asked
    claim.left = math.min(claim.left, math.max(1, tokens))  -- if there are none it tries all the same: that tells until when
  end
  if near and free and claim.left > free then
    claim.left = math.max(0, free)
    if claim.left == 0 then claim.opens = now + HANDS_FULL end
  end
end

if settings[10] then put_in_lanes() end
bound()
local heads = claim.left > 0 and ready_heads(types) or {}
if #heads > 0 then
  if claim.fair then start_fairly(claim, heads) else start_in_line(claim, heads) end
  close_claim(claim)
end
local cut = claim.expired > MOST_EXPIRED and 1 or #claim.aside.members >= MOST_ASIDE and 2 or 0
return {now, claim.opens and claim.opens - now or -1, settings[7] or '', cut, claim.taken}

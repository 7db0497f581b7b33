-- claim_limited: claim from a limited queue, or one with expired or throttled jobs: as claim.lua, with all limits.
-- Request: runner, claim, types, limit, the limit of the whole claim, and how many of it can start at once
-- (nothing: all). Reply: NO_LEASE; or the time, how long a claim would get nothing (-1: unknown), the rate that
-- causes it, whether it was cut short (1: by expired jobs, 2: by throttled ones), ids and records alternately.
--! effect: writes
--! missing_queue: skip
--! uses: record, record_claim, merged_stream, limited_start, fair_claim, assign_tenant_queues
local AHEAD_CLAIMS = 10  -- with room for this many claims like this one, jobs may be claimed ahead
local FULL_RUNNER_PAUSE = 20000  -- microseconds until a runner that could only have claimed ahead claims again
local MAX_TAKEN_FAIRLY = 100  -- each tenant is a seek of its own
local SETTINGS = {'paused', 'paused_until', 'max_concurrency', 'rate_tokens', 'rate_period', 'rate_burst', 'rate_limit',
  'fair', 'weights', 'assigning_tenants'}

local now = now_micros()
local runner, number, types, limit, asked, free = unpack(request, 1, 6)
if not has_lease(runner, now) then return NO_LEASE end
local before = claimed_before(runner, number)
if before then return {now, -1, '', 0, before} end
local settings = redis.call('HMGET', K.queue, unpack(SETTINGS))
if is_paused(settings[1], settings[2], now) then return {now, -1, '', 0, {}} end
local max_count, rate = tonumber(settings[3]), rate_of(settings[4], settings[5], settings[6])

local claim = open_claim(now, runner, number, limit)
claim.fair, claim.session = settings[8] == '1', rate_session_of(now, rate)
if claim.fair then claim.left = math.min(limit, MAX_TAKEN_FAIRLY) end
claim.weighing = settings[9] or ''
claim.weights = settings[9] and cjson.decode(settings[9]) or {}

-- Bound the claim by what the limits leave; near a limit nothing is claimed ahead.
local function bound()
  local near = false
  if max_count then
    local room = math.max(0, max_count - (tonumber(redis.call('HGET', K.counts, string.char(RUNNING))) or 0))
    near = room < AHEAD_CLAIMS * asked
    claim.left = math.min(claim.left, room)
  end
  if rate then
    local tokens = claim.session.queue_token_bucket.whole
    near = near or tokens < AHEAD_CLAIMS * asked
    claim.left = math.min(claim.left, math.max(1, tokens))  -- also without tokens, to compute until when
  end
  if near and free and claim.left > free then
    claim.left = math.max(0, free)
    if claim.left == 0 then claim.retry_at = now + FULL_RUNNER_PAUSE end
  end
end

allow_write_at_memory_limit()
if settings[10] then assign_tenant_queues() end
bound()
local heads = claim.left > 0 and ready_heads(types) or {}
if #heads > 0 then
  if claim.fair then start_fairly(claim, heads) else start_in_order(claim, heads) end
  close_claim(claim)
end
local cut = claim.expired > MAX_EXPIRED and 1 or #claim.throttled.members >= MAX_THROTTLED and 2 or 0
return {now, claim.retry_at and claim.retry_at - now or -1, settings[7] or '', cut, claim.taken}

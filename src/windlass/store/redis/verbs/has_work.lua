-- has_work: whether a claim or an admission would find anything. Request: types (nothing: any). Reply: the time,
-- whether a job is due, whether claimable jobs wait, how long until there are tokens (-1: there are), the rate that
-- causes it, and whether children are about to be notified.
--! effect: reads
--! missing_queue: skip
--! uses: record, token_buckets, record_claim, child_state
local now = now_micros()
local types = request[1]

local function has_pending()
  if not types then return (tonumber(redis.call('HGET', K.counts, string.char(PENDING))) or 0) > 0 end
  return #ready_heads(types) > 0
end

local paused, paused_until, limited, max_count, tokens, period, burst, text = unpack(redis.call('HMGET', K.queue, 'paused',
  'paused_until', 'limited', 'max_concurrency', 'rate_tokens', 'rate_period', 'rate_burst', 'rate_limit'), 1, 8)

-- How long until there are tokens; -1: there are.
local function tokens_in()
  local rate = rate_of(tokens, period, burst)
  if not rate then return -1 end
  local queue_token_bucket = refilled(stored_token_bucket(QUEUE_TOKEN_BUCKET) or full_token_bucket(rate, now), rate, now)
  return queue_token_bucket.whole > 0 and -1 or ready_at(queue_token_bucket, rate, 1) - now
end

local function is_full()
  return max_count and (tonumber(redis.call('HGET', K.counts, string.char(RUNNING))) or 0) >= tonumber(max_count)
end

-- Whether children are about to be notified, so that there may be work soon; a caller with types gets a hint then. A
-- check that is unanswered for long is for an unknown parent, and does not count.
local MAX_ASKED = 30000000
local function is_notifying()
  if types then return 0 end
  if redis.call('EXISTS', K.parent_changes, K.outbox) > 0 then return 1 end
  return #redis.call('ZRANGEBYSCORE', K.parent_checks, now - MAX_ASKED, now + CHECK_NOW, 'LIMIT', 0, 1)
end

local due = #redis.call('ZRANGEBYSCORE', K.due, '-inf', now, 'LIMIT', 0, 1)
local function answer(waiting, wait, rate) return {now, due, waiting, wait, rate, is_notifying()} end
if is_paused(paused, paused_until, now) or not has_pending() then return answer(0, -1, text or '') end
if limited ~= '1' then return answer(1, -1, '') end
local wait = is_full() and -1 or tokens_in()
return answer((is_full() or wait >= 0) and 0 or 1, wait, text or '')

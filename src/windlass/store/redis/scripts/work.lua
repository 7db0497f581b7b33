-- work: whether a claim from this queue, or an admission to it, would find anything. The request is types (nothing: any).
-- The answer is the store's time, whether anything is due, whether jobs wait that may be claimed, for how long there are no
-- tokens (-1: there are), the rate by which that is, and whether children are just to be told how their parents are.
-- makes no queue
-- uses: call, record, gate, claimed, child
-- keys: queue counts due wake outbox asking
local problem = strange()
if problem then return problem end
local now = the_time()
local types = request[1]

local function has_pending()
  if not types then return (tonumber(redis.call('HGET', K.counts, string.char(PENDING))) or 0) > 0 end
  return #ready_heads(types) > 0
end

local paused, paused_until, ruled, most, tokens, period, burst, text = unpack(redis.call('HMGET', K.queue, 'paused',
  'paused_until', 'ruled', 'max_concurrency', 'rate_tokens', 'rate_period', 'rate_burst', 'rate_limit'), 1, 8)

-- For how long there are no tokens; -1: there are.
local function shut_for()
  local rate = rate_of(tokens, period, burst)
  if not rate then return -1 end
  local own = refilled(gate_of(OWN) or full_bucket(rate, now), rate, now)
  return own.whole > 0 and -1 or ready_at(own, rate, 1) - now
end

local function is_full()
  return most and (tonumber(redis.call('HGET', K.counts, string.char(RUNNING))) or 0) >= tonumber(most)
end

-- Whether children are just to be told how their parents are: then there may be more to do soon. Who wants to know of some
-- types only will be hinted at it. One that asks for a parent for long asks in vain: nobody knows that one.
local LONGEST_ASKED = 30000000
local function is_telling()
  if types then return 0 end
  if redis.call('EXISTS', K.wake, K.outbox) > 0 then return 1 end
  return #redis.call('ZRANGEBYSCORE', K.asking, now - LONGEST_ASKED, now + AT_ONCE, 'LIMIT', 0, 1)
end

local due = #redis.call('ZRANGEBYSCORE', K.due, '-inf', now, 'LIMIT', 0, 1)
local function answer(waiting, wait, rate) return {now, due, waiting, wait, rate, is_telling()} end
if is_paused(paused, paused_until, now) or not has_pending() then return answer(0, -1, text or '') end
if ruled ~= '1' then return answer(1, -1, '') end
local wait = is_full() and -1 or shut_for()
return answer((is_full() or wait >= 0) and 0 or 1, wait, text or '')

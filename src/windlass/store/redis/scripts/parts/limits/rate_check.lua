-- rate_check: which of the next jobs may start, by the rates of their queue and keys, as in core/flow/rate_check.py. A
-- session is {now, rate and queue_token_bucket (or nil), token_bucket_of(key), throttled_of(key, from, to), budgets}; a
-- charge is {order, cost, key, rate}, without key and rate if its key has no rate. `throttled_of` returns {until
-- when, cost} of throttled jobs of the key between two orders; a cost of ALL leaves nothing. An order is a text
-- that sorts as sort_priority, rank and id do. A budget is the token bucket of a key, `now` and `later`, after its
-- throttled jobs.
--! uses: token_bucket, byte_order
local PAID, THROTTLE, STOP = 1, 2, 3
local ALL = -1

local function open_rate_session(now, rate, queue_token_bucket)
  local session = {now = now, rate = rate, budgets = {}, paid = false}
  if rate then session.queue_token_bucket = refilled(queue_token_bucket or full_token_bucket(rate, now), rate, now) end
  return session
end

-- Reserve tokens for a throttled job, which is charged when it starts; returns when it may start.
local function reserve_tokens(budget, earliest, tokens, rate)
  local token_bucket = budget.later or budget.now
  token_bucket = refilled(token_bucket, rate, token_bucket.at)
  local moment = math.max(earliest, ready_at(token_bucket, rate, tokens))
  budget.later = spent(refilled(token_bucket, rate, moment), tokens)
  return moment
end

-- Reserve the tokens of a job that was throttled before.
local function reserve_for_throttled(budget, before, rate)
  if before[2] == ALL then
    budget.later = {whole = 0, part = 0, period = rate.period, at = math.max(before[1], budget.now.at)}
  else
    reserve_tokens(budget, before[1], capped_cost(before[2], rate), rate)
  end
end

local function budget_of(session, charge)
  local budget = session.budgets[charge.key]
  if not budget then
    local token_bucket = session.token_bucket_of(charge.key) or full_token_bucket(charge.rate, session.now)
    budget = {now = refilled(token_bucket, charge.rate, session.now)}
    session.budgets[charge.key] = budget
  end
  return budget
end

-- Until when the job is throttled; nil: its key has tokens. No job overtakes another of its key.
local function throttled_until(session, budget, charge)
  local rate = charge.rate
  if not budget.passed or comes_before(budget.passed, charge.order) then
    local earlier = session.throttled_of(charge.key, budget.passed, charge.order)
    for _, before in ipairs(earlier) do reserve_for_throttled(budget, before, rate) end
    budget.passed = charge.order
  end
  local tokens = capped_cost(charge.cost, rate)
  if not budget.later and refilled(budget.now, rate, budget.now.at).whole >= tokens then return nil end
  return reserve_tokens(budget, 0, tokens, rate)
end

-- Charge the next job. Returns PAID; THROTTLE and until when; or STOP and when the queue has tokens again.
local function check_rate(session, charge)
  local budget = charge.rate and budget_of(session, charge)
  local moment = budget and throttled_until(session, budget, charge)
  if moment then return THROTTLE, moment end
  if session.rate then
    local tokens = capped_cost(charge.cost, session.rate)
    if session.queue_token_bucket.whole < tokens then return STOP, ready_at(session.queue_token_bucket, session.rate, tokens) end
    session.queue_token_bucket, session.paid = spent(session.queue_token_bucket, tokens), true
  end
  if budget then
    budget.now = spent(refilled(budget.now, charge.rate, budget.now.at), capped_cost(charge.cost, charge.rate))
    budget.rate = charge.rate  -- at which the job was charged
  end
  return PAID
end

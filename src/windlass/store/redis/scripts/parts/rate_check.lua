-- rate_check: which of the next jobs may start, by the rates of their queue and keys, as in core/flow/rate_check.py. A
-- session is {now, rate and queue_token_bucket (or nil), token_bucket_of(key), throttled_of(key, from, to), plans}; a charge
-- is {place, cost, key, rate}, without key and rate if its key has none. `throttled_of` gives {until when, cost}
-- of throttled jobs of the key between two places; a cost of ALL leaves nothing. A place is a text that sorts as
-- sort_priority, rank and id do.
--! uses: token_bucket, byte_order
local PAID, THROTTLE, STOP = 1, 2, 3
local ALL = -1

local function open_rate_session(now, rate, queue_token_bucket)
  local session = {now = now, rate = rate, plans = {}, paid = false}
  if rate then session.queue_token_bucket = refilled(queue_token_bucket or full_token_bucket(rate, now), rate, now) end
  return session
end

-- Reserve the tokens of a throttled job, which pays when it comes back.
local function reserve_tokens(plan, earliest, due, rate)
  local token_bucket = plan.later or plan.now
  token_bucket = refilled(token_bucket, rate, token_bucket.at)
  local moment = math.max(earliest, ready_at(token_bucket, rate, due))
  plan.later = spent(refilled(token_bucket, rate, moment), due)
  return moment
end

-- A job that was throttled before comes before the next one.
local function pass_throttled(plan, before, rate)
  if before[2] == ALL then
    plan.later = {whole = 0, part = 0, period = rate.period, at = math.max(before[1], plan.now.at)}
  else
    reserve_tokens(plan, before[1], capped_cost(before[2], rate), rate)
  end
end

local function plan_of(session, charge)
  local plan = session.plans[charge.key]
  if not plan then
    local token_bucket = session.token_bucket_of(charge.key) or full_token_bucket(charge.rate, session.now)
    plan = {now = refilled(token_bucket, charge.rate, session.now)}
    session.plans[charge.key] = plan
  end
  return plan
end

-- Until when it is throttled; nil: its key has tokens. No job overtakes another of its key.
local function must_wait(session, plan, charge)
  local rate = charge.rate
  if not plan.passed or comes_before(plan.passed, charge.place) then
    for _, before in ipairs(session.throttled_of(charge.key, plan.passed, charge.place)) do pass_throttled(plan, before, rate) end
    plan.passed = charge.place
  end
  local due = capped_cost(charge.cost, rate)
  if not plan.later and refilled(plan.now, rate, plan.now.at).whole >= due then return nil end
  return reserve_tokens(plan, 0, due, rate)
end

-- Of the next job: PAID; THROTTLE until a moment; or STOP: the queue has no tokens until a moment.
local function check_rate(session, charge)
  local plan = charge.rate and plan_of(session, charge)
  local moment = plan and must_wait(session, plan, charge)
  if moment then return THROTTLE, moment end
  if session.rate then
    local due = capped_cost(charge.cost, session.rate)
    if session.queue_token_bucket.whole < due then return STOP, ready_at(session.queue_token_bucket, session.rate, due) end
    session.queue_token_bucket, session.paid = spent(session.queue_token_bucket, due), true
  end
  if plan then
    plan.now = spent(refilled(plan.now, charge.rate, plan.now.at), capped_cost(charge.cost, charge.rate))
    plan.rate = charge.rate  -- by which it was charged
  end
  return PAID
end

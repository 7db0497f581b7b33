-- toll: which of the jobs that are next may start, by the rates of their queue and of their keys, as core/toll.py says.
-- They pay one after the other at a till:
--     till = {now, rate and own (the queue's, or nil), bucket_of(key), aside_of(key, from, to), plans = {}}
--     fare = {place, cost, key, rate}      key and rate: nil, if its key has none
-- `bucket_of` gives a key's bucket or nil, `aside_of` who of the key has stepped aside with a place after `from` (nil: any)
-- and before `to`, in their order, as {till when, cost}; one that costs ALL leaves nothing, for those before it. A place is a text that sorts as urgency, rank and id do.
-- uses: bucket, order
local PAID, STEPS_ASIDE, STOP = 1, 2, 3
local ALL = -1

local function open_till(now, rate, own)
  local till = {now = now, rate = rate, plans = {}, paid = false}
  if rate then till.own = refilled(own or full_bucket(rate, now), rate, now) end
  return till
end

-- What is to be spent after all who were passed; they pay when they come back.
local function set_apart(plan, earliest, due, rate)
  local bucket = plan.later or plan.now
  bucket = refilled(bucket, rate, bucket.at)
  local moment = math.max(earliest, ready_at(bucket, rate, due))
  plan.later = spent(refilled(bucket, rate, moment), due)
  return moment
end

-- One who has stepped aside before stands before the next.
local function pass(plan, before, rate)
  if before[2] == ALL then
    plan.later = {whole = 0, part = 0, period = rate.period, at = math.max(before[1], plan.now.at)}
  else
    set_apart(plan, before[1], price(before[2], rate), rate)
  end
end

local function plan_of(till, fare)
  local plan = till.plans[fare.key]
  if not plan then
    local bucket = till.bucket_of(fare.key) or full_bucket(fare.rate, till.now)
    plan = {now = refilled(bucket, fare.rate, till.now)}
    till.plans[fare.key] = plan
  end
  return plan
end

-- Until when it must step aside; nil: its key can pay. Nobody pays before one who stands before him.
local function must_wait(till, plan, fare)
  local rate = fare.rate
  if not plan.passed or comes_before(plan.passed, fare.place) then
    for _, before in ipairs(till.aside_of(fare.key, plan.passed, fare.place)) do pass(plan, before, rate) end
    plan.passed = fare.place
  end
  local due = price(fare.cost, rate)
  if not plan.later and refilled(plan.now, rate, plan.now.at).whole >= due then return nil end
  return set_apart(plan, 0, due, rate)
end

-- What becomes of the next one: it has PAID; it STEPS_ASIDE until then; or the queue cannot pay for it until then: STOP.
local function pay(till, fare)
  local plan = fare.rate and plan_of(till, fare)
  local moment = plan and must_wait(till, plan, fare)
  if moment then return STEPS_ASIDE, moment end
  if till.rate then
    local due = price(fare.cost, till.rate)
    if till.own.whole < due then return STOP, ready_at(till.own, till.rate, due) end
    till.own, till.paid = spent(till.own, due), true
  end
  if plan then
    plan.now = spent(refilled(plan.now, fare.rate, plan.now.at), price(fare.cost, fare.rate))
    plan.rate = fare.rate  -- that it was paid by
  end
  return PAID
end

-- token_bucket: token buckets, computed as in core/flow/rate.py. A rate is {tokens, period, burst}. A credit may exceed
-- the exact range of a number, so a token bucket is {whole, part, period, at}: whole tokens, and a part of one in units
-- of 1/period.
local function full_token_bucket(rate, now) return {whole = rate.burst, part = 0, period = rate.period, at = now} end

-- The tokens that come in less than a period, whole ones and a part. The product has up to 57 bits, so in two steps.
local function accrued(micros, tokens, period)
  local high = micros * math.floor(tokens / 1024)
  local low = micros * (tokens % 1024)
  local rest = high % period * 1024
  local whole = math.floor(high / period) * 1024 + math.floor(rest / period) + math.floor(low / period)
  local part = rest % period + low % period
  if part >= period then return whole + 1, part - period end
  return whole, part
end

-- A clock that was set back adds nothing; a token bucket of another rate keeps its whole tokens, up to the burst.
local function refilled(token_bucket, rate, now)
  local period = rate.period
  local passed = math.max(0, now - token_bucket.at)
  local whole, part = accrued(passed % period, rate.tokens, period)
  whole = whole + token_bucket.whole + math.floor(passed / period) * rate.tokens
  if token_bucket.period == period then part = part + token_bucket.part end
  if part >= period then whole, part = whole + 1, part - period end
  if whole >= rate.burst then whole, part = rate.burst, 0 end
  return {whole = whole, part = part, period = period, at = math.max(now, token_bucket.at)}
end

local function spent(token_bucket, tokens)
  return {whole = token_bucket.whole - tokens, part = token_bucket.part, period = token_bucket.period, at = token_bucket.at}
end

-- A cost above the burst counts as a full token bucket.
local function capped_cost(cost, rate) return math.min(cost, rate.burst) end

-- When the token bucket, just refilled, has this many tokens, rounded up.
local function ready_at(token_bucket, rate, tokens)
  local missing = math.min(tokens, rate.burst) - token_bucket.whole
  if missing <= 0 then return token_bucket.at end
  local period, each = rate.period, rate.tokens
  local periods, rest = math.floor((missing - 1) / each), (missing - 1) % each
  local units = rest * (period % each) + period - token_bucket.part
  return token_bucket.at + periods * period + rest * math.floor(period / each) + math.ceil(units / each)
end

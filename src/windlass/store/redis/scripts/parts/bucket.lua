-- bucket: tokens that a rate brings, reckoned as core/rate.py does. A rate is {tokens, period, burst}. A credit can be
-- more than a number holds exactly, so a bucket is {whole, part, period, at}: whole tokens, and a part of one in units of
-- which a token has as many as its period has microseconds.
local function full_bucket(rate, now) return {whole = rate.burst, part = 0, period = rate.period, at = now} end

-- What `tokens` bring in less than a period: whole tokens and a part. In two steps, for the product has up to 57 bits.
local function brought(micros, tokens, period)
  local high = micros * math.floor(tokens / 1024)
  local low = micros * (tokens % 1024)
  local rest = high % period * 1024
  local whole = math.floor(high / period) * 1024 + math.floor(rest / period) + math.floor(low / period)
  local part = rest % period + low % period
  if part >= period then return whole + 1, part - period end
  return whole, part
end

-- A clock that was set back brings nothing; a bucket of another rate keeps its whole tokens, as far as they fit.
local function refilled(bucket, rate, now)
  local period = rate.period
  local passed = math.max(0, now - bucket.at)
  local whole, part = brought(passed % period, rate.tokens, period)
  whole = whole + bucket.whole + math.floor(passed / period) * rate.tokens
  if bucket.period == period then part = part + bucket.part end
  if part >= period then whole, part = whole + 1, part - period end
  if whole >= rate.burst then whole, part = rate.burst, 0 end
  return {whole = whole, part = part, period = period, at = math.max(now, bucket.at)}
end

local function spent(bucket, tokens)
  return {whole = bucket.whole - tokens, part = bucket.part, period = bucket.period, at = bucket.at}
end

-- One that costs more than the bucket can hold empties a full one.
local function price(cost, rate) return math.min(cost, rate.burst) end

-- The moment at which the bucket, as it was just refilled, holds so many: what is missing by the tokens of the rate, rounded up.
local function ready_at(bucket, rate, tokens)
  local more = math.min(tokens, rate.burst) - bucket.whole
  if more <= 0 then return bucket.at end
  local period, each = rate.period, rate.tokens
  local periods, rest = math.floor((more - 1) / each), (more - 1) % each
  local units = rest * (period % each) + period - bucket.part
  return bucket.at + periods * period + rest * math.floor(period / each) + math.ceil(units / each)
end

-- rate_session: the rates of this queue during one claim; `close_rate_session` writes the buckets.
--! uses: record, rate_check, buckets
--! keys: jobs, throttled
local MAX_WALKED = 200

-- When each of them comes back, and for how much.
local function returns_of(members)
  local found, ids = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, -36) end
  for i, value in ipairs(#ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}) do
    local r = read_record(value)
    found[i] = {r.run_at, has(r.flags, COSTLY) and fields_of(r)[RATE_COST] or 1}
  end
  return found
end

-- Who of a key has stepped aside, with a place after `from` and before `to`: when each comes back, and for how much. Of
-- very many only the last: when the one before them has paid there will be nothing left, which costs a newcomer at most
-- the fraction of a token.
local function throttled_jobs(key, from, to)
  local first, last = from and '(' .. key .. from or '[' .. key, '(' .. key .. to
  local members = redis.call('ZREVRANGEBYLEX', K.throttled, last, first, 'LIMIT', 0, MAX_WALKED + 1)
  for i = 1, math.floor(#members / 2) do members[i], members[#members + 1 - i] = members[#members + 1 - i], members[i] end
  local found = returns_of(members)
  if #found > MAX_WALKED then found[1][2] = ALL end
  return found
end

local function rate_session_of(now, rate)
  local session = open_rate_session(now, rate, rate and stored_bucket(QUEUE_BUCKET))
  session.bucket_of, session.throttled_of = stored_bucket, throttled_jobs
  return session
end

-- The charge of a job: `place` is its sort_priority, rank and id.
local function charge_of(r, place)
  local charge = {place = place, cost = 1}
  if has(r.flags, COSTLY) then charge.cost = fields_of(r)[RATE_COST] end
  if has(r.flags, RATED) then
    local fields = fields_of(r)
    charge.key, charge.rate = fields[CONCURRENCY_DIGEST], rate_of(unpack(fields[KEY_RATE], 1, 3))
  end
  return charge
end

-- Twice as many buckets are looked at as are written: they can be too many to wait for a coordinator.
local function close_rate_session(session)
  local written = 0
  if session.paid then store_bucket(QUEUE_BUCKET, session.queue_bucket, ready_at(session.queue_bucket, session.rate, session.rate.burst)) end
  for key, plan in pairs(session.plans) do
    if plan.rate then
      store_bucket(key, plan.now, ready_at(plan.now, plan.rate, plan.rate.burst))
      written = written + 1
    end
  end
  if written > 0 then drop_full_buckets(session.now, 2 * written) end
end

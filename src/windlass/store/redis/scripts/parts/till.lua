-- till: where the jobs of this queue pay for their start. What was paid is written down at the end, by `close_till`.
-- uses: record, toll, gate
-- keys: jobs aside
local MOST_WALKED = 200

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
local function stepped_aside(key, from, to)
  local first, last = from and '(' .. key .. from or '[' .. key, '(' .. key .. to
  local members = redis.call('ZREVRANGEBYLEX', K.aside, last, first, 'LIMIT', 0, MOST_WALKED + 1)
  for i = 1, math.floor(#members / 2) do members[i], members[#members + 1 - i] = members[#members + 1 - i], members[i] end
  local found = returns_of(members)
  if #found > MOST_WALKED then found[1][2] = ALL end
  return found
end

local function till_of(now, rate)
  local till = open_till(now, rate, rate and gate_of(OWN))
  till.bucket_of, till.aside_of = gate_of, stepped_aside
  return till
end

-- What a job pays: `place` is its urgency, rank and id.
local function fare_of(r, place)
  local fare = {place = place, cost = 1}
  if has(r.flags, COSTLY) then fare.cost = fields_of(r)[RATE_COST] end
  if has(r.flags, RATED) then
    local fields = fields_of(r)
    fare.key, fare.rate = fields[LINE], rate_of(unpack(fields[KEY_RATE], 1, 3))
  end
  return fare
end

local function close_till(till)
  if till.paid then set_gate(OWN, till.own, ready_at(till.own, till.rate, till.rate.burst)) end
  for key, plan in pairs(till.plans) do
    if plan.rate then set_gate(key, plan.now, ready_at(plan.now, plan.rate, plan.rate.burst)) end
  end
end

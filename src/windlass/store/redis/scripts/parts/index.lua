-- index: where a job is found, as its record says. Whoever changes a record takes it out of its places before, and puts
-- it into its new ones after; `ids`, `jobs` and `keys` are not places.
-- uses: record, hint, claims
-- keys: queue counts ready pend lanes due expiring cancels ended rare failing line slots parked aside children
local waiting_letters = {[PENDING] = true, [SCHEDULED] = true, [ASIDE] = true, [FAILED] = true, [BLOCKED] = true,
  [IN_LINE] = true, [PARKED] = true}
local finished_letters = {[COMPLETED] = true, [DEAD] = true, [CANCELLED] = true}

local function ready_member(id, r)
  return struct.pack('>I4I2I8', r.type, r.urgency + LEVEL, r.rank) .. id
end

local function lane_member(id, r)
  local tenant = has(r.flags, TENANTED) and fields_of(r)[TENANT] or ''
  return struct.pack('>I2', r.urgency + LEVEL) .. tenant .. '\0' .. struct.pack('>I4I8', r.type, r.rank) .. id
end

-- In strict order, that of being due, priority says nothing.
local function line_member(id, r)
  local urgency = has(r.flags, STRICT) and 0 or r.urgency
  return fields_of(r)[LINE] .. struct.pack('>I2I8', urgency + LEVEL, r.rank) .. id
end

local function slot_member(id, r) return fields_of(r)[LINE] .. struct.pack('>I2', r.slot) .. id end
local function parked_member(id, r) return struct.pack('>I4I8', r.type, r.rank) .. id end
local function aside_member(id, r)
  return fields_of(r)[LINE] .. struct.pack('>I2I8', r.urgency + LEVEL, r.rank) .. id
end

local function bump(letter, by) redis.call('HINCRBY', K.counts, string.char(letter), by) end

local is_fair
local function fair()
  if is_fair == nil then is_fair = redis.call('HGET', K.queue, 'fair') == '1' end
  return is_fair
end

local function leave_places(id, r)
  local letter = r.letter
  bump(letter, -1)
  if letter == PENDING then
    redis.call('ZREM', K.ready, ready_member(id, r))
    redis.call('HINCRBY', K.pend, r.type, -1)
    redis.call('ZREM', K.lanes, lane_member(id, r))
  elseif letter == RUNNING then
    release_claim(claim_head(r.runner, r.claim), 1)
    if has(r.flags, CANCELLING) then redis.call('SREM', K.cancels, id) end
  elseif letter == SCHEDULED or letter == FAILED or letter == ASIDE then
    redis.call('ZREM', K.due, id)
    if letter == ASIDE then redis.call('ZREM', K.aside, aside_member(id, r)) end
  elseif letter == IN_LINE then
    redis.call('ZREM', K.line, line_member(id, r))
  elseif letter == PARKED then
    redis.call('ZREM', K.parked, parked_member(id, r))
  elseif finished_letters[letter] then
    redis.call('ZREM', K.ended, id)
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    redis.call('ZREM', K.rare, string.char(letter) .. id)
    redis.call('ZREM', K.failing, id)
  end
  if r.slot >= 0 then redis.call('ZREM', K.slots, slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[letter] then redis.call('ZREM', K.expiring, id) end
end

-- `drop_at` is the moment at which a finished job may go.
local function enter_places(id, r, drop_at)
  local letter = r.letter
  bump(letter, 1)
  if letter == PENDING then
    redis.call('ZADD', K.ready, 0, ready_member(id, r))
    if redis.call('HINCRBY', K.pend, r.type, 1) == 1 then announce() end
    if fair() then redis.call('ZADD', K.lanes, 0, lane_member(id, r)) end
  elseif letter == SCHEDULED or letter == FAILED or letter == ASIDE then
    redis.call('ZADD', K.due, r.run_at, id)
    if letter == ASIDE then redis.call('ZADD', K.aside, 0, aside_member(id, r)) end
  elseif letter == IN_LINE then
    redis.call('ZADD', K.line, 0, line_member(id, r))
  elseif letter == PARKED then
    redis.call('ZADD', K.parked, 0, parked_member(id, r))
  elseif finished_letters[letter] then
    redis.call('ZADD', K.ended, drop_at, id)
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    redis.call('ZADD', K.rare, 0, string.char(letter) .. id)
    if letter ~= CANCELLED then redis.call('ZADD', K.failing, r.updated, id) end
  end
  if r.slot >= 0 then redis.call('ZADD', K.slots, 0, slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[letter] then redis.call('ZADD', K.expiring, r.expires, id) end
end

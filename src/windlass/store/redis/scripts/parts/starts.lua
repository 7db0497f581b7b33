-- starts: the jobs that are next in a ruled queue start, one after the other, if they can pay; who cannot steps aside, who
-- has expired is called off. A claim is a table, made by `open_claim`; its `left` says how many more may start.
-- A candidate is {id, place, head, lane}: urgency, rank and id; how its place in `ready` begins; and its place in `lanes`,
-- if it was found there.
-- uses: record, index, till, more, calloff, line, claimed, stream
-- keys: counts jobs ready pend lanes due aside
local MOST_ASIDE, MOST_EXPIRED, MOST_LOOKED = 100, 50, 600
local NEEDS_READING = RATED + COSTLY + MORE

local function open_claim(now, runner, number, limit)
  return {now = now, runner = runner, number = number, left = limit, looked = 0, expired = 0, seen = {}, lines = {},
    taken = {}, members = {}, lanes = {}, aside = {members = {}, due = {}, places = {}, records = {}, types = {}}}
end

local function clear_reason(id, r)
  if not has(r.flags, MORE) then return end
  local more = read_more(id, r)
  more.reason = nil
  write_more(id, r, more)
end

local function leave_lane(claim, candidate, value)
  if not claim.fair then return end
  claim.lanes[#claim.lanes + 1] = candidate[4] or lane_member(candidate[1], read_record(value))
end

-- No attempt is counted. It keeps its slot and its rank, and comes back when its key has tokens for it.
local function step_aside(claim, candidate, r, moment)
  local aside, id, count = claim.aside, candidate[1], 2 * #claim.aside.members
  clear_reason(id, r)  -- its letter says why
  r.letter, r.version, r.run_at, r.updated = ASIDE, r.version + 1, moment, claim.now
  aside.members[#aside.members + 1] = candidate[3] .. candidate[2]
  aside.due[count + 1], aside.due[count + 2] = moment, id
  aside.places[count + 1], aside.places[count + 2] = 0, aside_member(id, r)
  aside.records[count + 1], aside.records[count + 2] = id, write_record(r)
  aside.types[r.type] = (aside.types[r.type] or 0) + 1
  if #aside.members >= MOST_ASIDE then claim.left = 0 end
end

local function take(claim, candidate, value)
  local count, runner = #claim.taken, claim.runner
  local _, version, attempt, _, _, _, _, length = struct.unpack(HEAD_A, value)
  claim.taken[count + 1] = candidate[1]
  claim.taken[count + 2] = struct.pack(HEAD_A, RUNNING, version + 1, attempt + 1, claim.number, claim.now, claim.now, 0,
    #runner) .. runner .. string.sub(value, A_SIZE + length + 1)
  claim.members[count / 2 + 1] = candidate[3] .. candidate[2]
  claim.left = claim.left - 1
end

-- Whether it can pay. If not, it steps aside; or the queue has nothing left, and nobody starts any more. `r` is nil for
-- one whose start costs one token of the queue, and none of a key.
local function pays(claim, candidate, r, value)
  if not claim.till.rate and not (r and has(r.flags, RATED)) then return true end
  local place = candidate[2]
  local what, moment = pay(claim.till, r and fare_of(r, place) or {place = place, cost = 1})
  if what == STEPS_ASIDE then
    leave_lane(claim, candidate, value)
    step_aside(claim, candidate, r, moment)
  elseif what == STOP then
    claim.left, claim.opens = 0, moment
  end
  return what == PAID
end

-- Its record was removed by hand: nobody else shall stumble over what is left of it.
local function give_up_on(claim, candidate)
  if claim.fair and candidate[4] then redis.call('ZREM', K.lanes, candidate[4]) end
  if redis.call('ZREM', K.ready, candidate[3] .. candidate[2]) == 0 then return end
  redis.call('HINCRBY', K.pend, struct.unpack('>I4', candidate[3]), -1)
  bump(PENDING, -1)
end

-- Whether it has started. Most jobs need not be read for it: a glance says enough.
local function start_one(claim, candidate, value)
  if not value then return give_up_on(claim, candidate) end
  local flags, expires = glance(value)
  if expires > 0 and expires <= claim.now then
    claim.expired = claim.expired + 1
    if claim.expired <= MOST_EXPIRED then
      call_off(candidate[1], read_record(value), 'expired', claim.now, claim.lines)
    end
    return false
  end
  local r = bit.band(flags, NEEDS_READING) ~= 0 and read_record(value) or nil
  if not pays(claim, candidate, r, value) then return false end
  leave_lane(claim, candidate, value)
  if has(flags, MORE) then
    clear_reason(candidate[1], r)
    value = write_record(r)
  end
  take(claim, candidate, value)
  return true
end

-- They start in this order: which of them did, by their numbers.
local function start(claim, candidates)
  local ids, started = {}, {}
  for i, candidate in ipairs(candidates) do
    ids[i] = candidate[1]
    claim.seen[candidate[1]] = true
  end
  claim.looked = claim.looked + #ids
  for i, value in ipairs(#ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}) do
    if claim.left == 0 then break end
    started[i] = start_one(claim, candidates[i], value)
  end
  if claim.looked > MOST_LOOKED then claim.left = 0 end
  return started
end

-- In the order of the line, as long as they can pay.
local function start_in_line(claim, heads)
  local next_one = stream(K.ready, heads, portion_of(claim.left, #heads))
  local more = true
  while more and claim.left > 0 do
    local candidates = {}
    while more and #candidates < claim.left do
      local place, head = next_one()
      more = place ~= nil
      local id = place and string.sub(place, -36)
      if id and not claim.seen[id] then candidates[#candidates + 1] = {id, place, head} end
    end
    start(claim, candidates)
  end
end

local function put_aside(aside)
  local count = #aside.members
  if count == 0 then return end
  redis.call('ZREM', K.ready, unpack(aside.members))
  redis.call('ZADD', K.due, unpack(aside.due))
  redis.call('ZADD', K.aside, unpack(aside.places))
  redis.call('HSET', K.jobs, unpack(aside.records))
  for type, jobs in pairs(aside.types) do redis.call('HINCRBY', K.pend, type, -jobs) end
  bump(PENDING, -count)
  bump(ASIDE, count)
end

-- Write down who has started and who has stepped aside, and what was paid.
local function close_claim(claim)
  close_till(claim.till)
  put_aside(claim.aside)
  if #claim.members > 0 then
    hold(claim.runner, claim.number, claim.taken, claim.members)
    start_in_time(claim.taken)
  end
  if #claim.lanes > 0 then redis.call('ZREM', K.lanes, unpack(claim.lanes)) end
  move_up(claim.lines, claim.now)
end

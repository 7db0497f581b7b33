-- starts: the jobs that are next in a ruled queue start, one after the other, if they can pay; who cannot steps aside, who
-- has expired is called off. A claim is a table:
--     {now, runner, claim, left, rate, fair, taken = {}, members = {}, lanes = {}, seen = {}, looked = 0, aside = 0}
-- A candidate is {id, place, head}: urgency, rank and id; and how its place in `ready` begins.
-- uses: record, index, till, more, calloff, line, claimed, stream
-- keys: jobs ready lanes
local MOST_ASIDE, MOST_EXPIRED, MOST_LOOKED = 250, 250, 1500

local function clear_reason(id, r)
  if not has(r.flags, MORE) then return end
  local more = read_more(id, r)
  more.reason = nil
  write_more(id, r, more)
end

-- No attempt is counted. It keeps its slot and its rank, and comes back when its key has tokens for it.
local function step_aside(claim, id, r, moment)
  leave_places(id, r)
  clear_reason(id, r)  -- its letter says why
  r.letter, r.version, r.run_at, r.updated = ASIDE, r.version + 1, moment, claim.now
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
  claim.aside = claim.aside + 1
  if claim.aside >= MOST_ASIDE then claim.left = 0 end
end

local function take(claim, candidate, r)
  local id = candidate[1]
  if claim.fair then claim.lanes[#claim.lanes + 1] = lane_member(id, r) end
  clear_reason(id, r)
  r.letter, r.version, r.attempt, r.claim = RUNNING, r.version + 1, r.attempt + 1, claim.claim
  r.runner, r.updated, r.claimed, r.started = claim.runner, claim.now, claim.now, 0
  local count = #claim.taken
  claim.taken[count + 1], claim.taken[count + 2] = id, write_record(r)
  claim.members[count / 2 + 1] = candidate[3] .. candidate[2]
  claim.left = claim.left - 1
end

-- Whether it has started. Once the queue has nothing left, nobody does any more.
local function start_one(claim, candidate, r)
  if r.expires > 0 and r.expires <= claim.now then
    claim.expired = claim.expired + 1
    if claim.expired <= MOST_EXPIRED then call_off(candidate[1], r, 'expired', claim.now, claim.lines) end
    return false
  end
  if claim.rate or has(r.flags, RATED) then
    local what, moment = pay(claim.till, fare_of(r, candidate[2]))
    if what == STEPS_ASIDE then
      step_aside(claim, candidate[1], r, moment)
      return false
    elseif what == STOP then
      claim.left, claim.opens = 0, moment
      return false
    end
  end
  take(claim, candidate, r)
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
    started[i] = start_one(claim, candidates[i], read_record(value))
  end
  if claim.looked > MOST_LOOKED then claim.left = 0 end
  return started
end

-- In the order of the line, as long as they can pay.
local function start_in_line(claim, heads)
  local next_one = stream(K.ready, heads, math.min(claim.left, 100))
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

-- Write down who has started, and what was paid for it.
local function settle_up(claim)
  close_till(claim.till)
  move_up(claim.lines, claim.now)
  if #claim.members == 0 then return end
  hold(claim.runner, claim.claim, claim.taken, claim.members)
  start_in_time(claim.taken)
  if #claim.lanes > 0 then redis.call('ZREM', K.lanes, unpack(claim.lanes)) end
end

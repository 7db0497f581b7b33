-- admit: jobs whose time has come may run, the earliest first; with a key and no slot they go to its line. The request is
-- how many at most, of which a call does as much as it may; 0 is a look. Those of a queue that has become fair get their lanes. Answers with how many, and how long
-- until the next is due (nothing: none is to come).
-- uses: call, record, index, line, more, laning
-- keys: queue due jobs
local problem = strange()
if problem then return problem end
local MOST_WEIGHT, HEAVY = 250, 4
local now = the_time()

-- The rank among the pending is never in the past: see core/admission.py.
local function rank_of(r) return math.max(r.run_at, now) end

local function admit(id, r, lines)
  leave_places(id, r)
  if has(r.flags, LINED) and r.slot < 0 then
    r.letter, r.rank = IN_LINE, r.run_at
    at_line(lines, r)
  else
    -- Who stepped aside for a rate has not lost its place by that.
    if r.letter ~= ASIDE then r.rank = rank_of(r) end
    r.letter = PENDING
  end
  r.version, r.updated = r.version + 1, now
  local more = read_more(id, r)
  if more.reason then
    more.reason = nil
    write_more(id, r, more)
  end
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
end

-- Most were scheduled, and have nothing else about them: all of those are written together. When they expire is known.
local function is_plain(r) return r.letter == SCHEDULED and bit.band(r.flags, LINED + MORE) == 0 end

local function admit_plain(ids, records)
  local values, ready, lanes, by_type = {}, {}, {}, {}
  for i, id in ipairs(ids) do
    local r = records[i]
    r.letter, r.version, r.updated, r.rank = PENDING, r.version + 1, now, rank_of(r)
    values[2 * i - 1], values[2 * i] = id, write_record(r)
    ready[2 * i - 1], ready[2 * i] = 0, ready_member(id, r)
    if fair() then lanes[2 * i - 1], lanes[2 * i] = 0, lane_member(id, r) end
    by_type[r.type] = (by_type[r.type] or 0) + 1
  end
  redis.call('HSET', K.jobs, unpack(values))
  redis.call('ZREM', K.due, unpack(ids))
  redis.call('ZADD', K.ready, unpack(ready))
  if #lanes > 0 then redis.call('ZADD', K.lanes, unpack(lanes)) end
  bump(SCHEDULED, -#ids)
  bump(PENDING, #ids)
  for type, jobs in pairs(by_type) do
    if redis.call('HINCRBY', K.pend, type, jobs) == jobs then announce() end
  end
end

-- How many, up to as much work as one call may be: whoever is not plain is as much as several.
local function admit_all(ids)
  local lines, plain, records, weight, done = {}, {}, {}, 0, #ids
  local values = redis.call('HMGET', K.jobs, unpack(ids))
  for i, id in ipairs(ids) do
    local r = values[i] and read_record(values[i])
    if not r then
      redis.call('ZREM', K.due, id)  -- removed by hand: it must not hold up the others
    elseif is_plain(r) then
      plain[#plain + 1], records[#records + 1] = id, r
    else
      admit(id, r, lines)
      weight = weight + HEAVY - 1
    end
    weight = weight + 1
    if weight >= MOST_WEIGHT then
      done = i
      break
    end
  end
  if #plain > 0 then admit_plain(plain, records) end
  move_up(lines, now)
  return done
end

local due = request > 0 and redis.call('ZRANGEBYSCORE', K.due, '-inf', now, 'LIMIT', 0, request) or {}
local admitted = #due > 0 and admit_all(due) or 0
local laning = put_in_lanes()
if go_on(now) or laning then return {admitted, 0} end
local first = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')
return {admitted, first[2] and first[2] - now}

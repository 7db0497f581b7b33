-- admit: jobs whose time has come may run, the earliest first; with a key and no slot they go to its line. The request is
-- how many at most; 0 is a look. Those of a queue that has become fair get their lanes. Answers with how many, and how long
-- until the next is due (nothing: none is to come).
-- uses: call, record, index, line, more, laning
-- keys: queue due jobs
local problem = strange()
if problem then return problem end
local now = the_time()

-- The rank among the pending is never in the past: see core/admission.py.
local function admit(id, r, lines)
  leave_places(id, r)
  if has(r.flags, LINED) and r.slot < 0 then
    r.letter, r.rank = IN_LINE, r.run_at
    at_line(lines, r)
  else
    -- Who stepped aside for a rate has not lost its place by that.
    if r.letter ~= ASIDE then r.rank = math.max(r.run_at, now) end
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

local lines, admitted = {}, 0
if request > 0 then
  local ids = redis.call('ZRANGEBYSCORE', K.due, '-inf', now, 'LIMIT', 0, request)
  local values = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  for i, id in ipairs(ids) do admit(id, read_record(values[i]), lines) end
  admitted = #ids
  move_up(lines, now)
end
local laning = put_in_lanes()
if go_on(now) or laning then return {admitted, 0} end
local first = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')
return {admitted, first[2] and first[2] - now}

-- line: the lines for concurrency keys. Whoever frees a slot, comes to a line or leaves one says so by `at_line`, and
-- calls `move_up` at the end of the same script: after that nobody who is first in a line could have a slot.
--     local lines = {}
--     at_line(lines, r)               -- for each record, as it was or as it is: one without a key is passed over
--     local went = move_up(lines, now)
-- A newcomer need not be looked at: put into its line (letter IN_LINE, enter_places) it moves up like everybody else.
-- Who wants to spare that second write asks `line_head` (nobody there?) and `free_slots`, in the order of the line.
-- uses: record, index
-- keys: queue counts jobs ready pend lanes line slots stalled
local LINE_END = '\255\255\255'  -- no urgency, rank, slot or id goes on like this
local LINE_ID = 32 + 2 + 8 + 1  -- where an id begins in a member of `line`: after digest, urgency and rank
local DEFAULT_KEY_LIMIT = 1
local MOST_UP = 500

local function at_line(lines, r)
  if has(r.flags, LINED) then lines[fields_of(r)[LINE]] = true end
end

-- Who gives the free slots of a key to the first in line, one after the other: a function from the limit, which whoever
-- is first brings, to the lowest slot that is free; nil if as many are taken. What it has given counts as taken,
-- whether that is written yet or not. Slots are found by halving, for a key may have thousands: those up to a number
-- are all taken if there are so many of them. It must equal core/slots.granted.
local function free_slots(line)
  local first = '[' .. line
  local taken, low, given = redis.call('ZLEXCOUNT', K.slots, first, '(' .. line .. LINE_END), 0, 0
  return function(limit)
    local high = taken + given
    if high >= (limit or DEFAULT_KEY_LIMIT) then return nil end
    while low < high do
      local middle = math.floor((low + high) / 2)
      local upto = '(' .. line .. struct.pack('>I2', middle) .. LINE_END
      if redis.call('ZLEXCOUNT', K.slots, first, upto) + given == middle + 1 then low = middle + 1 else high = middle end
    end
    low, given = low + 1, given + 1
    return low - 1
  end
end

-- The slot that one alone gets.
local function granted(line, limit) return free_slots(line)(limit) end

-- The members of those who stand first in a line, after so many others.
local function line_heads(line, after, most)
  return redis.call('ZRANGEBYLEX', K.line, '[' .. line, '(' .. line .. LINE_END, 'LIMIT', after, most)
end

-- The member of the first in line, or nil.
local function line_head(line) return line_heads(line, 0, 1)[1] end

-- One who stands in line has got a slot, and goes on behind those that are pending already.
local function step_up(up, member, id, r, slot)
  r.letter, r.version, r.slot, r.rank, r.updated = PENDING, r.version + 1, slot, up.now, up.now
  up.jobs = up.jobs + 1
  up.went[id] = true
  local n = 2 * up.jobs
  up.members[up.jobs] = member
  up.records[n - 1], up.records[n] = id, write_record(r)
  up.slots[n - 1], up.slots[n] = 0, slot_member(id, r)
  up.ready[n - 1], up.ready[n] = 0, ready_member(id, r)
  if fair() then up.lanes[n - 1], up.lanes[n] = 0, lane_member(id, r) end
  up.types[r.type] = (up.types[r.type] or 0) + 1
end

-- All of a line who can: mostly one slot was freed, so the first look is at two.
local function step_up_all(up, line, lost)
  local members, most, looked = line_heads(line, 0, 2), 2, 0
  local next_slot = members[1] and free_slots(line)
  while members[1] do
    for _, member in ipairs(members) do
      if up.jobs == MOST_UP then return redis.call('SADD', K.stalled, line) end
      local id = string.sub(member, LINE_ID)
      local value = redis.call('HGET', K.jobs, id)
      if value then
        local r = read_record(value)
        local slot = next_slot(fields_of(r)[KEY_LIMIT])
        if not slot then return end
        step_up(up, member, id, r, slot)
      else
        lost[#lost + 1] = member  -- removed by hand: it must not hold up the others
      end
    end
    if #members < most then return end
    looked, most = looked + #members, 100
    members = line_heads(line, looked, most)
  end
end

-- Free slots of these keys go to the first in line: {id = true} of all who went on. What is more than a call may do is
-- remembered, and done by the next `go_on`. When a job expires stays as it was.
local function move_up(lines, now)
  local up = {now = now, jobs = 0, went = {}, members = {}, records = {}, slots = {}, ready = {}, lanes = {}, types = {}}
  local lost = {}
  for line in pairs(lines) do step_up_all(up, line, lost) end
  for _, member in ipairs(lost) do redis.call('ZREM', K.line, member) end
  if up.jobs == 0 then return up.went end
  redis.call('ZREM', K.line, unpack(up.members))
  redis.call('HSET', K.jobs, unpack(up.records))
  redis.call('ZADD', K.slots, unpack(up.slots))
  redis.call('ZADD', K.ready, unpack(up.ready))
  if #up.lanes > 0 then redis.call('ZADD', K.lanes, unpack(up.lanes)) end
  bump(IN_LINE, -up.jobs)
  bump(PENDING, up.jobs)
  for type, jobs in pairs(up.types) do
    if redis.call('HINCRBY', K.pend, type, jobs) == jobs then announce() end
  end
  return up.went
end

-- Lines in which more could go on than one call lets: some more of them. Whether any is left.
local function go_on(now)
  local lines = {}
  for _, line in ipairs(redis.call('SPOP', K.stalled, 10)) do lines[line] = true end
  if next(lines) then move_up(lines, now) end
  return redis.call('EXISTS', K.stalled) == 1
end

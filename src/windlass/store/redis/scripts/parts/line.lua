-- line: the lines for concurrency keys. Whoever frees a slot, comes to a line or leaves one says so by `at_line`, and
-- calls `move_up` at the end of the same script: after that nobody who is first in a line could have a slot.
--     local lines = {}
--     at_line(lines, r)               -- for each record, as it was or as it is: one without a key is passed over
--     local went = move_up(lines, now)
-- A newcomer need not be looked at: put into its line (letter IN_LINE, enter_places) it moves up like everybody else.
-- Who wants to spare that second write asks `line_head` (nobody there?) and `granted`, in the order of the line.
-- uses: record, index
-- keys: jobs line slots stalled
local LINE_END = '\255\255\255'  -- no urgency, rank, slot or id goes on like this
local DEFAULT_KEY_LIMIT = 1
local MOST_UP = 250

local function at_line(lines, r)
  if has(r.flags, LINED) then lines[fields_of(r)[LINE]] = true end
end

-- The slot that the first in line gets, which brings the limit: the lowest that is free; nil if as many are taken.
-- It is found by halving, for a key may have thousands of slots. Up to a full number, all below are taken.
local function granted(line, limit)
  local first = '[' .. line
  local taken = redis.call('ZLEXCOUNT', K.slots, first, '(' .. line .. LINE_END)
  if taken >= (limit or DEFAULT_KEY_LIMIT) then return nil end
  local low, high = 0, taken
  while low < high do
    local middle = math.floor((low + high) / 2)
    local below = redis.call('ZLEXCOUNT', K.slots, first, '(' .. line .. struct.pack('>I2', middle) .. LINE_END)
    if below == middle + 1 then low = middle + 1 else high = middle end
  end
  return low
end

-- The member of the first in line, or nil.
local function line_head(line)
  return redis.call('ZRANGEBYLEX', K.line, '[' .. line, '(' .. line .. LINE_END, 'LIMIT', 0, 1)[1]
end

-- Where an id begins in a member of `line`: after digest, urgency and rank.
local LINE_ID = 32 + 2 + 8 + 1

-- The first in line goes on, behind those that are pending already: its id, or nil if nobody can.
local function one_up(line, now)
  local member = line_head(line)
  if not member then return nil end
  local id = string.sub(member, LINE_ID)
  local r = read_record(redis.call('HGET', K.jobs, id))
  local slot = granted(line, fields_of(r)[KEY_LIMIT])
  if not slot then return nil end
  leave_places(id, r)
  r.letter, r.version, r.slot, r.rank, r.updated = PENDING, r.version + 1, slot, now, now
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r)
  return id
end

-- Free slots of these keys go to the first in line: {id = true} of all who went on. What is more than a call may do is
-- remembered, and done by the next `go_on`.
local function move_up(lines, now)
  local went, left = {}, MOST_UP
  for line in pairs(lines) do
    local id
    repeat
      if left == 0 then
        redis.call('SADD', K.stalled, line)
        break
      end
      id = one_up(line, now)
      if id then went[id], left = true, left - 1 end
    until not id
  end
  return went
end

-- Lines in which more could go on than one call lets: some more of them. Whether any is left.
local function go_on(now)
  local lines = {}
  for _, line in ipairs(redis.call('SPOP', K.stalled, 10)) do lines[line] = true end
  if next(lines) then move_up(lines, now) end
  return redis.call('EXISTS', K.stalled) == 1
end

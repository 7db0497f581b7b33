-- complete: attempts that ended well. The request is lists of ids, attempts, moments from claim to start (-1: it never
-- started) and results (empty: none). The answer has a number for each: 1 if it is done; 0 if it does not run so; -1 if
-- it was not looked at, because those before it were work enough for one call. Who waits for them goes on. If that is more
-- than this call may do, or in other queues, the answer goes on like that of `follow`.
-- uses: call, record, index, keep, more, hold, bury, place, line, room, pass, ends
-- rarely: put_record read_more write_more move_up release_keys forget_all tell_heir stir_as tell_ends
-- keys: queue counts jobs more ended slots
local problem = strange()
if problem then return problem end
local now = the_time()
local ids, attempts, starts, results = unpack(request, 1, 4)
local keep = keep_of(COMPLETED)
local values = redis.call('HMGET', K.jobs, unpack(ids))
local answer, claims, lines, seen = {}, {}, {}, {}
local records, ended, slots, keyed, digests, unkept = {}, {}, {}, {}, {}, {}
local done, unusual = 0, 0
local gifts, work = {}, {now = now, lines = lines, sent = {}}
local UNUSUAL = CANCELLING + MORE
local weight, MOST_WEIGHT, HEAVY = 0, 300, 4  -- in plain ones

-- Most are like this: nothing but the head changes.
local function finish_plain(i, value)
  local _, version, attempt, claim, _, claimed, started, length = struct.unpack(HEAD_A, value)
  if starts[i] >= 0 then started = claimed + starts[i] end
  return struct.pack(HEAD_A, COMPLETED, version + 1, attempt, claim, now, claimed, started, length)
    .. string.sub(value, A_SIZE + 1) .. results[i]
end

-- It has an idempotency key or a slot, or is not kept.
local function finish_bound(i, value)
  local id, r = ids[i], read_record(value)
  if has(r.flags, KEYED) then
    local fields = fields_of(r)
    keyed[#keyed + 1] = {id, fields[KEY_DIGEST], fields[WINDOW]}
    digests[#digests + 1] = fields[KEY_DIGEST]
  end
  if r.slot >= 0 then
    slots[#slots + 1] = slot_member(id, r)
    at_line(lines, r)
    r.slot = -1
  end
  r.letter, r.version, r.updated = COMPLETED, r.version + 1, now
  if starts[i] >= 0 then r.started = r.claimed + starts[i] end
  r.tail = r.tail .. results[i]
  if keep == 0 then unkept[id] = r end
  return write_record(r)
end

-- Others wait for it: few go on at once, with its result; many are told by `follow`. Where none is left its flag goes.
local function hand_on(i, value, length)
  local members = few_heirs(ids[i])
  if not members then
    stir_as(ids[i], COMPLETED, results[i])
    work.more = true
    return value
  end
  weight = weight + 2 * #members
  for _, member in ipairs(members) do gifts[#gifts + 1], gifts[#gifts + 2] = member, results[i] end
  local flags = struct.unpack('>I2', value, A_SIZE + length + 1) - HEIRS
  return string.sub(value, 1, A_SIZE + length) .. struct.pack('>I2', flags) .. string.sub(value, A_SIZE + length + 3)
end

-- All of them are written together, below.
local function add(i, value, flags, runner, claim)
  local bound = keep == 0 or bit.band(flags, KEYED + LINED) ~= 0
  local finished = (bound and finish_bound or finish_plain)(i, value)
  done = done + 1
  if keep > 0 then
    local n = #records
    records[n + 1], records[n + 2] = ids[i], finished
    ended[n + 1], ended[n + 2] = now + keep, ids[i]
  end
  local head = claim_head(runner, claim)
  claims[head] = (claims[head] or 0) + 1
end

-- It failed before, or somebody wants it stopped. Neither reason nor error outlives a good end.
local function put_unusual(i, value)
  local id, before, r = ids[i], read_record(value), read_record(value)
  unusual = unusual + 1
  r.letter, r.updated, r.slot = COMPLETED, now, -1
  if starts[i] >= 0 then r.started = r.claimed + starts[i] end
  r.tail = r.tail .. results[i]
  if has(r.flags, MORE) then write_more(id, r, {attempts = read_more(id, r).attempts}) end
  put_record(id, before, r, now, lines)
end

for i, id in ipairs(ids) do
  local value = values[i]
  answer[i] = weight < MOST_WEIGHT and 0 or -1
  if value and not seen[id] and weight < MOST_WEIGHT then  -- one that comes twice is done once
    local letter, _, attempt, claim, _, _, _, length = struct.unpack(HEAD_A, value)
    if letter == RUNNING and attempt == attempts[i] then
      answer[i], seen[id] = 1, true
      local flags = struct.unpack('>I2', value, A_SIZE + length + 1)
      weight = weight + (keep > 0 and bit.band(flags, UNUSUAL + KEYED + LINED) == 0 and 1 or HEAVY)
      if has(flags, HEIRS) then
        if bit.band(flags, UNUSUAL) == 0 then value = hand_on(i, value, length) else work.more = true end
      end
      if bit.band(flags, UNUSUAL) == 0 then
        add(i, value, flags, string.sub(value, A_SIZE + 1, A_SIZE + length), claim)
      else
        put_unusual(i, value)
      end
    end
  end
end
if done > 0 then bump(RUNNING, -done) end
if #records > 0 then
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ended, unpack(ended))
  bump(COMPLETED, done)
end
for head, jobs in pairs(claims) do release_claim(head, jobs) end
if #slots > 0 then redis.call('ZREM', K.slots, unpack(slots)) end
if #keyed > 0 then release_keys(keyed, digests, now) end
if keep == 0 then forget_all(unkept, now) end
if #gifts > 0 then pass_on(gifts, work) end
if next(lines) then move_up(lines, now) end
made_room(done + unusual)
if done > 0 and awaited() then tell_ends(seen) end
if work.more or #work.sent > 0 or asked_here[1] then
  answer[#ids + 1] = to_do()
  for n, each in ipairs(work.sent) do answer[#ids + 1 + n] = each end
end
return answer

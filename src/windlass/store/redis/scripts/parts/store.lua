-- store: newcomers that were judged are written, all that is alike at once.
-- uses: intake, order, types, heirs
-- keys: heirs asking wake
local KIND_BLOB, KIND_OWN, KIND_LIMIT, KIND_PARENTS, KIND_PARENT = 12, 13, 17, 18, 19

local function last_of_type(type, urgency)
  local head = struct.pack('>I4I2', type, urgency + LEVEL)
  local last = redis.call('ZREVRANGEBYLEX', K.ready, '(' .. head .. '\255\255\255\255\255\255\255\255\255', '[' .. head, 'LIMIT', 0, 1)[1]
  return last and struct.unpack('>I8', last, 7) or 0
end

-- The rank of the last who waits there; of other types only while the clock is behind that of a hand-in before.
local function last_rank(type, urgency, set_back)
  local last = last_of_type(type, urgency)
  for _, other in ipairs(set_back and redis.call('HKEYS', K.pend) or {}) do
    last = math.max(last, last_of_type(tonumber(other), urgency))
  end
  return last
end

-- core.admission.birth and core.expiry.expiry: what the clock says of a kind. `moment` is when it was handed in: of a
-- large hand-in that is unfolded, when that was committed.
local function birth(kind, moment, now, settings)
  local b = {created = moment}
  b.flags, b.name, b.urgency, b.run_at, b.delay, b.max_attempts, b.timeout, b.expires, b.expires_in = unpack(kind, 1, 9)
  b.type = number_of(b.name)
  b.run_at = b.run_at or moment + b.delay
  if not b.expires then b.expires = b.expires_in and moment + b.expires_in or 0 end
  b.max_attempts = b.max_attempts or tonumber(settings[1])
  b.timeout = b.timeout or tonumber(settings[2])
  if kind[KIND_PARENTS] then
    b.letter, b.run_at, b.rank = BLOCKED, kind[4] or moment, kind[4] and 0 or b.delay
    return b
  end
  b.letter = b.run_at > moment and SCHEDULED or PENDING
  b.rank = math.max(b.run_at, moment)
  if b.letter == PENDING then
    local last = last_rank(b.type, b.urgency, now < (tonumber(settings[3]) or 0))
    if last > now then b.rank = last + 1 end
  end
  return b
end

local function head_of(b, letter, slot, size)
  return struct.pack(HEAD_A, letter, 0, 0, 0, b.created, 0, 0, 0)
    .. struct.pack(HEAD_B, b.flags, b.type, b.urgency, 0, b.rank, b.run_at, b.created, b.expires, b.timeout,
      b.max_attempts, slot, 0, 0, 0, 0, 0, 0, size)
end

-- How many come to each line at once. Where it is only one, and nobody is there, it need not be put into the line first.
local function comers(kinds, known, found)
  local count = {}
  for k, kind in ipairs(kinds) do
    for i, line in ipairs(kind[LINES] or {}) do
      if not known[k][i] and not (found.stands[k] and found.stands[k][i]) then count[line] = (count[line] or 0) + 1 end
    end
  end
  return count
end

-- Letter and slot of one that is due; `place` is where it would stand in its line. Behind somebody it can but wait.
local function seat(line, place, limit, count, lines)
  local head = line_head(line)
  if head then
    if comes_before(place, head) then lines[line] = true end
  elseif count[line] == 1 then
    local slot = granted(line, limit)
    if slot then return PENDING, slot end
  else
    lines[line] = true
  end
  return IN_LINE, -1
end

local function add_pair(pairs_, member)
  local n = #pairs_
  pairs_[n + 1], pairs_[n + 2] = 0, member
end


-- The jobs of a kind that are new, as they will lie in each of their places: pairs for HSET and ZADD. How many are stored
-- and how many of them are pending.
local function lay_out(kind, b, blobs, known, stands, count, lines)
  local ids, payloads, line_of, own = kind[IDS], kind[11], kind[LINES], kind[KIND_OWN]
  local records, index, ready, due, lined, slots, expiring, lanes = {}, {}, {}, {}, {}, {}, {}, {}
  local fields = blobs[kind[KIND_BLOB]]
  local head = head_of(b, b.letter, -1, #fields) .. fields
  local place = struct.pack('>I4I2I8', b.type, b.urgency + LEVEL, b.rank)
  local in_line = struct.pack('>I2I8', (has(b.flags, STRICT) and 0 or b.urgency) + LEVEL, b.rank)
  local in_lane = b.letter == PENDING and fair()
    and lane_member('', {flags = b.flags, urgency = b.urgency, type = b.type, rank = b.rank, fields = cmsgpack.unpack(fields)})
  local stored, pending = 0, 0
  for i, id in ipairs(ids) do
    if not known[i] and not (stands and stands[i]) then
      stored = stored + 1
      local n, letter, slot, payload = 2 * stored, b.letter, -1, payloads[i]
      if own then
        fields = blobs[kind[KIND_BLOB] + i - 1]
        if line_of and letter == PENDING then
          letter, slot = seat(line_of[i], line_of[i] .. in_line .. id, kind[KIND_LIMIT], count, lines)
        end
        head = head_of(b, letter, slot, #fields) .. fields
      end
      records[n - 1], records[n] = id, head .. struct.pack('>I4', #payload) .. payload
      index[n - 1], index[n] = 0, id
      if b.expires > 0 then expiring[n - 1], expiring[n] = b.expires, id end
      if letter == PENDING then
        pending = pending + 1
        local p = 2 * pending
        ready[p - 1], ready[p] = 0, place .. id
        if in_lane then lanes[p - 1], lanes[p] = 0, in_lane .. id end
        if slot >= 0 then add_pair(slots, line_of[i] .. struct.pack('>I2', slot) .. id) end
      elseif letter == SCHEDULED then
        due[n - 1], due[n] = b.run_at, id
      elseif letter == IN_LINE then
        add_pair(lined, line_of[i] .. in_line .. id)
      end
    end
  end
  return {records = records, ids = index, ready = ready, due = due, line = lined, slots = slots, expiring = expiring,
    lanes = lanes}, stored, pending
end

local function add(key, members)
  if #members > 0 then redis.call('ZADD', key, unpack(members)) end
end

-- Links have their parents each for itself.
local function add_children(kind, known, stands)
  local pairs_ = {}
  for i, id in ipairs(kind[IDS]) do
    if kind[KIND_PARENT][i] and not known[i] and not (stands and stands[i]) then
      add_pair(pairs_, kind[KIND_PARENT][i] .. id)
    end
  end
  add(K.children, pairs_)
end

local function store_kind(kind, b, blobs, known, stands, count, lines)
  local laid, stored, pending = lay_out(kind, b, blobs, known, stands, count, lines)
  if stored == 0 then return end
  redis.call('HSET', K.jobs, unpack(laid.records))
  add(K.ids, laid.ids)
  add(K.ready, laid.ready)
  add(K.due, laid.due)
  add(K.line, laid.line)
  add(K.slots, laid.slots)
  add(K.expiring, laid.expiring)
  add(K.lanes, laid.lanes)
  if kind[KIND_PARENTS] then
    add_children(kind, known, stands)
  elseif has(b.flags, CHILD) then
    local parent = cmsgpack.unpack(blobs[kind[KIND_BLOB]])[PARENT]
    for n = 2, #laid.ids, 2 do redis.call('ZADD', K.children, 0, parent .. laid.ids[n]) end
  end
  if b.letter == SCHEDULED or b.letter == BLOCKED then
    bump(b.letter, stored)
  elseif stored > pending then
    bump(IN_LINE, stored - pending)
  end
  if pending > 0 then
    bump(PENDING, pending)
    if redis.call('HINCRBY', K.pend, b.type, pending) == pending then announce() end
  end
end

-- Those who were replaced go, and the newcomers have the keys.
local function pass_keys_on(found, now, lines)
  for _, pair in ipairs(found.replaced) do
    local id, newcomer = pair[1], pair[2]
    call_off(id, read_record(redis.call('HGET', K.jobs, id)), 'replaced by ' .. newcomer, now, lines)
  end
  local entries = {}
  for digest, id in pairs(found.taken) do
    entries[#entries + 1] = digest
    entries[#entries + 1] = id
    if found.contested[digest] then redis.call('ZREM', K.windows, digest) end
  end
  if #entries > 0 then redis.call('HSET', K.keys, unpack(entries)) end
end

-- Links find their parents: those that came with them, or are in this queue. Who has one that is not must ask for it: the
-- ids of those, and of those that came before and whose producer did not live to ask: he may be here again.
local function link_all(kinds, known, found, now, lines)
  local edges, fresh, links, asking = {}, {}, {}, {}
  for k, kind in ipairs(kinds) do
    for i, id in ipairs(kind[IDS]) do
      if not known[k][i] and not (found.stands[k] and found.stands[k][i]) then
        fresh[id] = true
        if kind[KIND_PARENTS] then links[#links + 1] = {id, kind[KIND_PARENTS][i]} end
      elseif kind[KIND_PARENTS] and known[k][i] and redis.call('ZSCORE', K.asking, id) then
        asking[#asking + 1] = id
      end
    end
  end
  local function link(id, parent)
    if fresh[parent] then return add_pair(edges, WAITING .. parent .. id) end
    local letter, result = stand_by(parent, id, '')
    if letter and result then
      tell_child(id, redis.call('HGET', K.jobs, id), parent, letter, result, now, lines)
    elseif asking[#asking] ~= id then
      asking[#asking + 1] = id
      ask(id, now)
    end
  end
  for _, each in ipairs(links) do
    for at = 1, #each[2], 36 do link(each[1], string.sub(each[2], at, at + 35)) end
  end
  add(K.heirs, edges)
  return asking
end

local function has_links(kinds)
  for _, kind in ipairs(kinds) do
    if kind[KIND_PARENTS] then return true end
  end
  return false
end

-- Those who must ask for their parents (`register`), and whether others must be told of something (`follow`).
local function store(intake, blobs, moment, now, known, found)
  local settings = redis.call('HMGET', K.queue, 'max_attempts', 'timeout', 'handed_in')
  if now > (tonumber(settings[3]) or 0) then redis.call('HSET', K.queue, 'handed_in', now) end
  local count, lines = comers(intake[1], known, found), {}
  for k, kind in ipairs(intake[1]) do
    store_kind(kind, birth(kind, moment, now, settings), blobs, known[k], found.stands[k], count, lines)
  end
  if found.taken then pass_keys_on(found, now, lines) end
  local asking = has_links(intake[1]) and link_all(intake[1], known, found, now, lines) or nil
  if next(lines) then move_up(lines, now) end
  local may_stir = asking or found.replaced and #found.replaced > 0
  return asking or {}, may_stir and redis.call('EXISTS', K.wake) == 1
end

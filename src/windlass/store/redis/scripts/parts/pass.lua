-- pass: parents that have just completed let those go on who wait for them, in the same call. Most have one child each, of
-- this queue, which waits for nothing else: all of those are written together.
-- uses: record, index, heirs
-- keys: jobs counts ready pend lanes wake heirs
local MOST_CHILDREN = 10

-- Who waits for it, by member of `heirs`; nil, if they are many, or not told yet what happened to it before.
local function few_heirs(parent)
  local members = heirs_of(WAITING, parent, MOST_CHILDREN + 1)
  if #members > MOST_CHILDREN or redis.call('HEXISTS', K.wake, parent) == 1 then return nil end
  return members
end

local function is_plain_child(r, now)
  return r.letter == BLOCKED and bit.band(r.flags, LINED + WAITS) == WAITS and r.rank == 0 and r.run_at <= now
    and #fields_of(r)[PARENTS] == ONE_PARENT
end

local function write_due(children, now)
  local records, ready, lanes, by_type = {}, {}, {}, {}
  for i, child in ipairs(children) do
    local id, r = child[1], child[2]
    r.letter, r.version, r.run_at, r.rank, r.updated = PENDING, r.version + 1, now, now, now
    records[2 * i - 1], records[2 * i] = id, write_record(r)
    ready[2 * i - 1], ready[2 * i] = 0, ready_member(id, r)
    if fair() then lanes[2 * i - 1], lanes[2 * i] = 0, lane_member(id, r) end
    by_type[r.type] = (by_type[r.type] or 0) + 1
  end
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ready, unpack(ready))
  if #lanes > 0 then redis.call('ZADD', K.lanes, unpack(lanes)) end
  bump(BLOCKED, -#children)
  bump(PENDING, #children)
  for type, jobs in pairs(by_type) do
    if redis.call('HINCRBY', K.pend, type, jobs) == jobs then announce() end
  end
end

-- `gifts` are members of `heirs` and the result of the parent, by turns. What goes to other queues is in work.sent then.
local function pass_on(gifts, work)
  local members, ids, due = {}, {}, {}
  for i = 1, #gifts, 2 do
    members[#members + 1] = gifts[i]
    ids[#ids + 1] = string.sub(gifts[i], 38, 73)
  end
  redis.call('ZREM', K.heirs, unpack(members))
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    local member, result = members[i], gifts[2 * i]
    local r = value and #member == 73 and read_record(value)
    if r and is_plain_child(r, work.now) then
      take_in(r, string.sub(member, 2, 37), result)
      due[#due + 1] = {ids[i], r}
    else
      tell_heir(member, COMPLETED, result, work)
    end
  end
  if #due > 0 then write_due(due, work.now) end
end

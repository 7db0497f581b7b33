-- release_dependents: parents that just completed release their dependents in the same call. Most have one child
-- each, in this queue, that waits for nothing else: all of those are written together.
--! uses: record, indexes, dependents
local MAX_CHILDREN = 10

local any_parent_changes

-- Its dependents; nil if they are many, or an earlier change of it is not notified yet.
local function few_dependents(parent)
  if any_parent_changes == nil then any_parent_changes = redis.call('EXISTS', K.parent_changes) == 1 end
  local members = dependents_of(WAITING, parent, MAX_CHILDREN + 1)
  if #members > MAX_CHILDREN or any_parent_changes and redis.call('HEXISTS', K.parent_changes, parent) == 1 then return nil end
  return members
end

-- What of HEAD_B a child that goes on changes, and how long that is.
local PLACE, PLACE_SIZE = '>I2I4i4I2i8i8', 28

-- A child that waits for this parent alone, and for nothing else: its record, as it is due now, and the beginning of its
-- place in `ready`. Nothing, if it is not like that. Only what changes is read.
local function made_due(value, parent, result, now)
  local letter, version, attempt, claim, _, claimed, started, length = struct.unpack(HEAD_A, value)
  local at = A_SIZE + length
  local flags, type, sort_priority, aged_by, delay, run_at = struct.unpack(PLACE, value, at + 1)
  if letter ~= BLOCKED or bit.band(flags, HAS_CONCURRENCY_KEY + WAITS_FOR_PARENTS + ONE_PARENT + HAS_PARENT_RESULTS) ~= WAITS_FOR_PARENTS + ONE_PARENT then return nil end
  if delay > 0 or run_at > now or fair() then return nil end
  local parent_results = ''
  flags = flags - WAITS_FOR_PARENTS
  if has(flags, TAKES_RESULT) then
    flags = flags + HAS_PARENT_RESULTS
    parent_results = '[["' .. parent .. '",' .. (result ~= '' and cjson.encode(result) or 'null') .. ']]'
    parent_results = struct.pack('>I4', #parent_results) .. parent_results
  end
  local record = struct.pack(HEAD_A, PENDING, version + 1, attempt, claim, now, claimed, started, length)
    .. string.sub(value, A_SIZE + 1, at) .. struct.pack(PLACE, flags, type, sort_priority, aged_by, now, now)
    .. string.sub(value, at + PLACE_SIZE + 1) .. parent_results
  return record, struct.pack('>I4I2I8', type, sort_priority + LEVEL, now), type
end

local function write_due(records, ready, by_type)
  redis.call('HSET', K.jobs, unpack(records))
  redis.call('ZADD', K.ready, unpack(ready))
  add_count(BLOCKED, -#records / 2)
  add_count(PENDING, #records / 2)
  for type, jobs in pairs(by_type) do
    if redis.call('HINCRBY', K.pending_counts, type, jobs) == jobs then publish_hint() end
  end
end

-- `released` has members of `dependents` and the parent's result alternately. Mail for other queues is added to work.sent.
local function release_dependents(released, work)
  local members, ids, records, ready, by_type = {}, {}, {}, {}, {}
  for i = 1, #released, 2 do
    members[#members + 1] = released[i]
    ids[#ids + 1] = string.sub(released[i], 38, 73)
  end
  redis.call('ZREM', K.dependents, unpack(members))
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    local member, result, id = members[i], released[2 * i], ids[i]
    local record, place, type
    if value and #member == 73 then record, place, type = made_due(value, string.sub(member, 2, 37), result, work.now) end
    if record then
      local n = #records
      records[n + 1], records[n + 2] = id, record
      ready[n + 1], ready[n + 2] = 0, place .. id
      by_type[type] = (by_type[type] or 0) + 1
    else
      notify_dependent(member, COMPLETED, result, work)
    end
  end
  if #records > 0 then write_due(records, ready, by_type) end
end

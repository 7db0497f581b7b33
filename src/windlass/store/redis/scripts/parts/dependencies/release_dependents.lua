-- release_dependents: release the dependents of parents that just completed, in the same call. Most parents have one
-- child, in this queue, that waits for nothing else: all of those are written together.
--! uses: record, indexes, dependents
local MAX_CHILDREN = 10

local MAX_NEAR = 50

local any_parent_changes

-- The dependents of all jobs from one id to another, by parent, read at once if they are not too many: jobs that end
-- together mostly have adjacent ids. `released` are those that are released, `left` is the number of the others.
local function dependents_between(first, last)
  local near = {from = '[' .. WAITING .. first, to = '(' .. WAITING .. last .. '\255', by_parent = {}, released = {}}
  local members = redis.call('ZRANGEBYLEX', K.dependents, near.from, near.to, 'LIMIT', 0, MAX_NEAR)
  near.left = #members
  if #members == MAX_NEAR then return near end
  for _, member in ipairs(members) do
    local parent = string.sub(member, 2, 37)
    local of_parent = near.by_parent[parent]
    if of_parent then of_parent[#of_parent + 1] = member else near.by_parent[parent] = {member} end
  end
  return near
end

-- The dependents of a parent, to be released; nil if they are many, or were not notified of an earlier change yet.
-- `near`: dependents of jobs with adjacent ids.
local function few_dependents(parent, near)
  if any_parent_changes == nil then any_parent_changes = redis.call('EXISTS', K.parent_changes) == 1 end
  local of_near = near.by_parent[parent]
  local members = of_near or dependents_of(WAITING, parent, MAX_CHILDREN + 1)
  if #members > MAX_CHILDREN or any_parent_changes and redis.call('HEXISTS', K.parent_changes, parent) == 1 then return nil end
  near.left = near.left + (of_near and -#members or #members)
  for _, member in ipairs(members) do near.released[#near.released + 1] = member end
  return members
end

-- Remove released dependents from the index; if all of their range is released, by range, which costs half.
local function forget_waiting(near)
  if #near.released == 0 then return end
  if near.left == 0 then
    redis.call('ZREMRANGEBYLEX', K.dependents, near.from, near.to)
  else
    redis.call('ZREM', K.dependents, unpack(near.released))
  end
end

-- Head A and the beginning of head B of a record without a runner, which is what changes when a child is released; and
-- their size.
local NEVER_RUN, NEVER_RUN_SIZE = '>BI4I4I4i8i8i8BI4I4i4i8i8', 66

-- For a child that waits for nothing but this parent: its pending record, its member in `ready`, and its type. Nil for
-- other children. Only what changes is read.
local function made_due(id, value, parent, result, now)
  local letter, version, attempt, claim, _, claimed, started, length, flags, type, sort_priority, delay, run_at =
    struct.unpack(NEVER_RUN, value)
  if letter ~= BLOCKED or length > 0 or bit.band(flags, HAS_CONCURRENCY_KEY + WAITS_FOR_PARENTS + ONE_PARENT + HAS_PARENT_RESULTS) ~= WAITS_FOR_PARENTS + ONE_PARENT then return nil end
  if delay > 0 or run_at > now or fair() then return nil end
  local parent_results = ''
  flags = flags - WAITS_FOR_PARENTS
  if has(flags, TAKES_RESULT) then
    flags = flags + HAS_PARENT_RESULTS
    parent_results = '[["' .. parent .. '",' .. (result ~= '' and cjson.encode(result) or 'null') .. ']]'
    parent_results = struct.pack('>I4', #parent_results) .. parent_results
  end
  local head = struct.pack(NEVER_RUN, PENDING, version + 1, attempt, claim, now, claimed, started, 0, flags, type, sort_priority,
    now, now)
  return head .. string.sub(value, NEVER_RUN_SIZE + 1) .. parent_results,
    struct.pack('>I4I2I8c36', type, sort_priority + LEVEL, now, id), type
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

-- Release children: `released` is child, parent, the child's queue, the parent's result, and so on. Mail for other queues
-- is added to work.sent.
local function release_dependents(released, work)
  local ids, records, ready, by_type, n = {}, {}, {}, {}, 0
  for i = 1, #released / 4 do ids[i] = released[4 * i - 3] end
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    local id, parent, queue, result = ids[i], released[4 * i - 2], released[4 * i - 1], released[4 * i]
    local record, member, type
    if value and queue == '' then record, member, type = made_due(id, value, parent, result, work.now) end
    if record then
      n = n + 2
      records[n - 1], records[n] = id, record
      ready[n - 1], ready[n] = '0', member
      by_type[type] = (by_type[type] or 0) + 1
    else
      notify_dependent(WAITING .. parent .. id .. queue, COMPLETED, result, work)
    end
  end
  if n > 0 then write_due(records, ready, by_type) end
end

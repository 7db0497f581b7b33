-- drop: drop finished jobs with all that is kept of them; tombstones keep their ids for a day after their end. A
-- tombstone is the last attempt and its outcome: `1 completed`.
--! uses: record, indexes, details, parent_changes
local TOMBSTONE = 86400000000
local OUTCOME = '"outcome":"'

-- The outcome of the last attempt in the list. In JSON no text within a string can look like this name.
local function last_outcome(attempts)
  local from, outcome = 1, ''
  while attempts do
    local _, found = string.find(attempts, OUTCOME, from, true)
    if not found then break end
    local ends = string.find(attempts, '"', found + 1, true)
    outcome, from = string.sub(attempts, found + 1, ends - 1), ends
  end
  return outcome
end

-- Clear up to `max_count` old tombstones; returns how many.
local function clear_tombstones(now, max_count)
  local old = redis.call('ZRANGEBYSCORE', K.tombstone_times, '-inf', now, 'LIMIT', 0, max_count)
  if #old == 0 then return 0 end
  redis.call('HDEL', K.tombstones, unpack(old))
  redis.call('ZREM', K.tombstone_times, unpack(old))
  return #old
end

-- The tombstone of a finished job. Plain completions are not among the listed attempts.
local function tombstone_of(id, r)
  local outcome = r.letter == COMPLETED and 'completed' or last_outcome(read_details(id, r).attempts)
  return string.format('%.0f %s', r.attempt, outcome)
end

-- Remove these jobs and add tombstones (id, value, …) with their times (time, id, …).
local function replace_with_tombstones(ids, tombstones, tombstone_times, now)
  redis.call('HDEL', K.jobs, unpack(ids))
  redis.call('ZREM', K.ids, unpack(ids))
  if #tombstones == 0 then return end
  -- Also clear old ones, up to twice as many: without retention every job adds one, too many for the coordinator alone.
  clear_tombstones(now, #tombstones)
  redis.call('HSET', K.tombstones, unpack(tombstones))
  redis.call('ZADD', K.tombstone_times, unpack(tombstone_times))
end

-- Drop finished jobs (id → record) that were already removed from their indexes.
local function forget_jobs(jobs, now)
  local ids, tombstones, tombstone_times = {}, {}, {}
  for id, r in pairs(jobs) do
    ids[#ids + 1] = id
    local until_ = r.updated + TOMBSTONE
    if until_ > now then
      local n = #tombstones
      tombstones[n + 1], tombstones[n + 2] = id, tombstone_of(id, r)
      tombstone_times[n + 1], tombstone_times[n + 2] = until_, id
    end
    if has(r.flags, HAS_DEPENDENTS) then note_parent_dropped(id) end
    if has(r.flags, HAS_DETAILS) then redis.call('HDEL', K.details, id) end
    if has(r.flags, HAS_NOTES) then redis.call('HDEL', K.notes, id) end
    if has(r.flags, IS_CHILD) then redis.call('ZREM', K.children, fields_of(r)[PARENT] .. id) end
  end
  if #ids > 0 then replace_with_tombstones(ids, tombstones, tombstone_times, now) end
end

-- Drop finished jobs (id → record), also from their indexes.
local function drop_jobs(jobs, now)
  for id, r in pairs(jobs) do remove_from_indexes(id, r) end
  forget_jobs(jobs, now)
end

-- The tombstone of a job that moved to another queue: `> 7`, with its version.
local function moved_version(tombstone)
  return tonumber(string.match(tombstone, '^> (%d+)$'))
end

local function remember_moved(id, version, now)
  redis.call('HSET', K.tombstones, id, string.format('> %.0f', version))
  redis.call('ZADD', K.tombstone_times, now + TOMBSTONE, id)
end

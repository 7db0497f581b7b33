-- bury: finished jobs go, with all that is kept of them; their ids are remembered until a day after their end.
-- A tombstone is the last attempt and how that ended: `1 completed`.
-- uses: record, index, more, stir
-- keys: jobs more notes ids tombs buried children
local TOMBSTONE = 86400000000
local OUTCOME = '"outcome":"'

-- How the last of the listed attempts ended. In JSON no text within a string can look like this name.
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

-- Tombstones that are old: up to so many.
local function clear_tombs(now, most)
  local old = redis.call('ZRANGEBYSCORE', K.buried, '-inf', now, 'LIMIT', 0, most)
  if #old == 0 then return end
  redis.call('HDEL', K.tombs, unpack(old))
  redis.call('ZREM', K.buried, unpack(old))
end

-- The tombstone of a finished job. Plain completions are not among the listed attempts.
local function tomb_of(id, r)
  local outcome = r.letter == COMPLETED and 'completed' or last_outcome(read_more(id, r).attempts)
  return string.format('%.0f %s', r.attempt, outcome)
end

-- Finished jobs, id → record, that are in no place any more.
local function forget_all(jobs, now)
  local ids, tombs, buried = {}, {}, {}
  for id, r in pairs(jobs) do
    ids[#ids + 1] = id
    local until_ = r.updated + TOMBSTONE
    if until_ > now then
      local n = #tombs
      tombs[n + 1], tombs[n + 2] = id, tomb_of(id, r)
      buried[n + 1], buried[n + 2] = until_, id
    end
    if has(r.flags, HEIRS) then stir_gone(id) end
    if has(r.flags, MORE) then redis.call('HDEL', K.more, id) end
    if has(r.flags, NOTED) then redis.call('HDEL', K.notes, id) end
    if has(r.flags, CHILD) then redis.call('ZREM', K.children, fields_of(r)[PARENT] .. id) end
  end
  if #ids == 0 then return end
  redis.call('HDEL', K.jobs, unpack(ids))
  redis.call('ZREM', K.ids, unpack(ids))
  if #tombs == 0 then return end
  -- Twice as many go as come: where nothing is kept there is one for every job, too many to wait for a coordinator.
  clear_tombs(now, #tombs)
  redis.call('HSET', K.tombs, unpack(tombs))
  redis.call('ZADD', K.buried, unpack(buried))
end

-- Finished jobs, id → record, wherever they are.
local function drop_all(jobs, now)
  for id, r in pairs(jobs) do leave_places(id, r) end
  forget_all(jobs, now)
end

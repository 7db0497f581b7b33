-- bury: finished jobs go, with all that is kept of them; their ids are remembered until a day after their end.
-- A tombstone is the last attempt and how that ended: `1 completed`.
-- uses: record, index, more
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

-- A finished job that is in no place any more. Plain completions are not among the listed attempts.
local function forget(id, r, now)
  local until_ = r.updated + TOMBSTONE
  if until_ > now then
    local outcome = r.letter == COMPLETED and 'completed' or last_outcome(read_more(id, r).attempts)
    redis.call('HSET', K.tombs, id, string.format('%.0f %s', r.attempt, outcome))
    redis.call('ZADD', K.buried, until_, id)
  end
  redis.call('HDEL', K.jobs, id)
  redis.call('ZREM', K.ids, id)
  if has(r.flags, MORE) then redis.call('HDEL', K.more, id) end
  if has(r.flags, NOTED) then redis.call('HDEL', K.notes, id) end
  if has(r.flags, CHILD) then redis.call('ZREM', K.children, fields_of(r)[PARENT] .. id) end
end

local function drop(id, r, now)
  leave_places(id, r)
  forget(id, r, now)
end

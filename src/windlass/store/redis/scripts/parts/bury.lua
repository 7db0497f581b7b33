-- bury: a finished job goes, with all that is kept of it but its id and how it ended, which are remembered for a day.
-- uses: record, more
-- keys: jobs more notes ids tombs buried children
local TOMBSTONE = 86400000000

-- How its last attempt ended; plain completions are not in the list of attempts.
local function last_outcome(id, r)
  if r.letter == COMPLETED then return 'completed' end
  local attempts = more_of(id, r)[ATTEMPTS]
  local list = attempts and cjson.decode(attempts) or {}
  return #list > 0 and list[#list].outcome or ''
end

-- `r` has ended, and is in no place any more.
local function bury(id, r, now)
  if r.updated + TOMBSTONE > now then
    redis.call('HSET', K.tombs, id, string.format('%d:%s', r.attempt, last_outcome(id, r)))
    redis.call('ZADD', K.buried, r.updated + TOMBSTONE, id)
  end
  if has(r.flags, MORE) then redis.call('HDEL', K.more, id) end
  if has(r.flags, NOTED) then redis.call('HDEL', K.notes, id) end
  if has(r.flags, CHILD) then redis.call('ZREM', K.children, fields_of(r)[PARENT] .. id) end
  redis.call('HDEL', K.jobs, id)
  redis.call('ZREM', K.ids, id)
end

-- note: store notes of running attempts. Request: {id, attempt, start, version} of each: microseconds from claim
-- to start (-1: unknown), and the version of the job whose notes were read (-1: not read); ARGV[4] and on: the new
-- notes (empty: unchanged). Reply for each: 1: done, or the attempt is not running; 0: ask again; {version,
-- notes}: add to these.
--! effect: writes
--! uses: record
local ENOUGH = 500000  -- bytes of notes in one answer
local sent = 0

-- The stored notes that the caller must read before it adds to them; nil: none, or it has read them.
local function unread(id, r, version)
  if not has(r.flags, HAS_NOTES) or version == r.version then return nil end
  if sent > ENOUGH then return 0 end
  local kept = redis.call('HGET', K.notes, id) or ''
  sent = sent + #kept
  return {r.version, kept}
end

local function keep(entry, notes)
  local id, attempt, start, version = unpack(entry, 1, 4)
  local r = read_job(id)
  if not r or r.letter ~= RUNNING or r.attempt ~= attempt then return 1 end
  local first = notes ~= '' and unread(id, r, version)
  if first then return first end
  if start >= 0 and r.started == 0 then r.started = r.claimed + start end
  if notes ~= '' then
    redis.call('HSET', K.notes, id, notes)
    r.flags = bit.bor(r.flags, HAS_NOTES)
  end
  r.version = r.version + 1
  redis.call('HSET', K.jobs, id, write_record(r))
  return 1
end

local answer = {}
for i, entry in ipairs(request) do answer[i] = keep(entry, ARGV[3 + i]) end
return answer

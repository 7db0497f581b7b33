-- note: what running attempts say of themselves. The request is a list of {id, attempt, start, version}: the moment from
-- claim to start (-1: nothing said), and the version of the job whose notes were read (-1: they were not); ARGV[4] and on
-- are the notes as they shall be (empty: they stay). The answer for each: 1 if it is done, or not of an attempt that runs;
-- 0 if it must be asked again; else {version, notes}, for who must add to them.
-- uses: call, record
-- keys: queue jobs notes
local problem = strange()
if problem then return problem end
local ENOUGH = 500000  -- bytes of notes in one answer
local told = 0

-- The notes that somebody must read before he adds to them: nil if there are none, or he has.
local function unread(id, r, version)
  if not has(r.flags, NOTED) or version == r.version then return nil end
  if told > ENOUGH then return 0 end
  local kept = redis.call('HGET', K.notes, id) or ''
  told = told + #kept
  return {r.version, kept}
end

local function keep(entry, notes)
  local id, attempt, start, version = unpack(entry, 1, 4)
  local value = redis.call('HGET', K.jobs, id)
  local r = value and read_record(value)
  if not r or r.letter ~= RUNNING or r.attempt ~= attempt then return 1 end
  local first = notes ~= '' and unread(id, r, version)
  if first then return first end
  if start >= 0 and r.started == 0 then r.started = r.claimed + start end
  if notes ~= '' then
    redis.call('HSET', K.notes, id, notes)
    r.flags = bit.bor(r.flags, NOTED)
  end
  r.version = r.version + 1
  redis.call('HSET', K.jobs, id, write_record(r))
  return 1
end

local answer = {}
for i, entry in ipairs(request) do answer[i] = keep(entry, ARGV[3 + i]) end
return answer

-- note: what running attempts say of themselves. The request is a list of {id, attempt, start, digest}: the moment from
-- claim to start (-1: nothing said), and the digest of the notes that were read (empty: none); ARGV[4] and on are the
-- notes as they shall be (empty: they stay). The answer for each: 1 if it is done, or not of an attempt that runs; else
-- the notes as they are, for who must add to them.
-- uses: call, record
-- keys: queue jobs notes
local problem = strange()
if problem then return problem end

local function keep(entry, notes)
  local id, attempt, start, digest = unpack(entry, 1, 4)
  local value = redis.call('HGET', K.jobs, id)
  local r = value and read_record(value)
  if not r or r.letter ~= RUNNING or r.attempt ~= attempt then return 1 end
  local kept = redis.call('HGET', K.notes, id) or ''
  if notes ~= '' and (kept == '' and '' or redis.sha1hex(kept)) ~= digest then return kept end
  local flags, started = r.flags, r.started
  if start >= 0 and started == 0 then r.started = r.claimed + start end
  if notes ~= '' then
    redis.call('HSET', K.notes, id, notes)
    r.flags = bit.bor(r.flags, NOTED)
  end
  if r.flags ~= flags or r.started ~= started then
    r.version = r.version + 1
    redis.call('HSET', K.jobs, id, write_record(r))
  end
  return 1
end

local answer = {}
for i, entry in ipairs(request) do answer[i] = keep(entry, ARGV[3 + i]) end
return answer

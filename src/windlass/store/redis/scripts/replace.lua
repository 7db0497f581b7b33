-- replace: put decided records in the place of those that they were decided from, all of them or none. The request is a
-- list of {id, version, keep}: the version that was read, and what becomes of `more` (0 as it is, 1 given, 2 none).
-- Blobs: for each, the record, then `more` if it is given. Answers with the ids that have changed since: none, if done.
-- uses: call, record, index, keep
-- keys: queue counts jobs more
local problem = strange()
if problem then return problem end
local changed, before = {}, {}
for i, entry in ipairs(request) do
  local value = redis.call('HGET', K.jobs, entry[1])
  before[i] = value and read_record(value)
  if not value or before[i].version ~= entry[2] then changed[#changed + 1] = entry[1] end
end
if #changed > 0 then return changed end
local at = 4
for i, entry in ipairs(request) do
  local id, more = entry[1], entry[3]
  local r = read_record(ARGV[at])
  at = at + 1
  r.version = before[i].version + 1
  if more == 1 then
    redis.call('HSET', K.more, id, ARGV[at])
    at = at + 1
  elseif more == 2 then
    redis.call('HDEL', K.more, id)
  end
  leave_places(id, before[i])
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r, finished_letters[r.letter] and r.updated + keep_of(r.letter))
end
return changed

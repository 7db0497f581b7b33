-- read_records: jobs by id. Request: ids, and whether their notes are wanted. Reply: the time, how many ids were looked
-- up (fewer than all if records are long), then {id, record, details, notes} of each that is here; {id, tombstone} of a
-- dropped one; {id} of one that is moving.
--! effect: reads
local ids, with_notes = unpack(request, 1, 2)
local PORTION, MAX_TEXT = 25, 1000000
local answer, text = {now_micros(), #ids}, 0

local function read(id, value)
  if value then
    local details = redis.call('HGET', K.details, id) or ''
    local notes = with_notes and redis.call('HGET', K.notes, id) or ''
    text = text + #value + #details + #notes
    return {id, value, details, notes}
  end
  if redis.call('HEXISTS', K.moving, id) == 1 then return {id} end
  local tombstone = redis.call('HGET', K.tombstones, id)
  return tombstone and {id, tombstone}
end

for from = 1, #ids, PORTION do
  if text > MAX_TEXT then
    answer[2] = from - 1
    break
  end
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids, from, math.min(from + PORTION - 1, #ids)))) do
    answer[#answer + 1] = read(ids[from + i - 1], value) or nil
  end
end
return answer

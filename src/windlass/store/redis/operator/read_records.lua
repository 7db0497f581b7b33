-- read_records: jobs by id, for decisions. Request: ids. Reply: the time, then {id, record, details} of each that
-- is here; {id, tombstone} of a dropped one; {id} of one that is moving.
--! effect: reads
local answer = {now_micros()}
for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(request))) do
  local id, seen = request[i], nil
  if value then
    seen = {id, value, redis.call('HGET', K.details, id) or ''}
  elseif redis.call('HEXISTS', K.moving, id) == 1 then
    seen = {id}
  else
    local tombstone = redis.call('HGET', K.tombstones, id)
    seen = tombstone and {id, tombstone}
  end
  if seen then answer[#answer + 1] = seen end
end
return answer

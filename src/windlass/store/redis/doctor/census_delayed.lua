-- census_delayed: scheduled and failed jobs, the earliest first. Request: offset and maximum. Reply: {type,
-- moment} of each.
--! effect: reads
--! uses: record
local from, count = unpack(request, 1, 2)
local answer = {}
local found = redis.call('ZRANGE', K.due, from, from + count - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local value = redis.call('HGET', K.jobs, found[i])
  if value then answer[#answer + 1] = {fields_of(read_record(value))[TYPE], tonumber(found[i + 1])} end
end
return answer

-- census_delayed: jobs of this queue that wait for their time, those that are due first. The request is from which on and
-- how many. The answer is {type, moment} of each.
-- uses: call, record
-- keys: queue jobs due
local problem = strange()
if problem then return problem end
local from, many = unpack(request, 1, 2)
local answer = {}
local found = redis.call('ZRANGE', K.due, from, from + many - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local value = redis.call('HGET', K.jobs, found[i])
  if value then answer[#answer + 1] = {fields_of(read_record(value))[TYPE], tonumber(found[i + 1])} end
end
return answer

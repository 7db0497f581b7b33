-- failures: the latest failed and dead jobs. Request: the maximum. Reply: {id, record, details} of each.
--! effect: reads
local answer = {}
for _, id in ipairs(redis.call('ZREVRANGE', K.failures, 0, request[1] - 1)) do
  local value = redis.call('HGET', K.jobs, id)
  if value then answer[#answer + 1] = {id, value, redis.call('HGET', K.details, id) or ''} end
end
return answer

-- failures: what failed last in this queue, first. The request is how many. The answer has id, record and more of each.
-- uses: call
-- keys: queue jobs more failing
local problem = strange()
if problem then return problem end
local answer = {}
for _, id in ipairs(redis.call('ZREVRANGE', K.failing, 0, request[1] - 1)) do
  local value = redis.call('HGET', K.jobs, id)
  if value then answer[#answer + 1] = {id, value, redis.call('HGET', K.more, id) or ''} end
end
return answer

-- leavers: jobs on their way from here to other queues. The request is how many microseconds they must have been at it,
-- and how many at most. The answer: {id, {target, record, more, notes}} of each.
-- uses: call
-- keys: queue leaving
local problem = strange()
if problem then return problem end
local least, most = request[1], request[2]
if redis.call('EXISTS', K.leaving) == 0 then return {} end
local now, answer = the_time(), {}
local found = redis.call('HGETALL', K.leaving)
for i = 1, #found, 2 do
  local since, packet = unpack(cmsgpack.unpack(found[i + 1]))
  if #answer < most and now - since >= least then answer[#answer + 1] = {found[i], packet} end
end
return answer

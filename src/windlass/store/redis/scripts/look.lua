-- look: jobs by their ids, wherever they are in their lives: record, more and notes of each, or nothing.
-- uses: call
-- keys: queue jobs more notes
local problem = strange()
if problem then return problem end
local values = redis.call('HMGET', K.jobs, unpack(request))
local answer = {the_time()}
for i, id in ipairs(request) do
  if values[i] then
    answer[#answer + 1] = {id, values[i], redis.call('HGET', K.more, id) or '', redis.call('HGET', K.notes, id) or ''}
  end
end
return answer

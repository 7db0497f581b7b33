-- look: jobs by their ids, wherever they are in their lives. The request is ids. The answer is the store's time, and of
-- each job that is here its id, record, more and notes.
-- uses: call
-- keys: queue jobs more notes
local problem = strange()
if problem then return problem end
local values = redis.call('HMGET', K.jobs, unpack(request))

local answer = {the_time()}
for i, id in ipairs(request) do
  local value = values[i]
  if value then
    local more, notes = redis.call('HGET', K.more, id) or '', redis.call('HGET', K.notes, id) or ''
    answer[#answer + 1] = {id, value, more, notes}
  end
end
return answer

-- look: jobs by their ids, wherever they are in their lives. The request is ids. The answer is the store's time, and of
-- each job that is here its id, record, more, notes, and when the lease of its runner ends here (empty: there is none).
-- uses: call, record
-- keys: queue jobs more notes lapses
local problem = strange()
if problem then return problem end
local values = redis.call('HMGET', K.jobs, unpack(request))

local function lease_end(value)
  local letter, _, _, _, _, _, _, length = struct.unpack(HEAD_A, value)
  if letter ~= RUNNING then return '' end
  return redis.call('ZSCORE', K.lapses, string.sub(value, A_SIZE + 1, A_SIZE + length)) or ''
end

local answer = {the_time()}
for i, id in ipairs(request) do
  local value = values[i]
  if value then
    local more, notes = redis.call('HGET', K.more, id) or '', redis.call('HGET', K.notes, id) or ''
    answer[#answer + 1] = {id, value, more, notes, lease_end(value)}
  end
end
return answer

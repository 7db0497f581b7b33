-- see: jobs by their ids, as who decides about them needs to know them. The request is the ids. The answer: the moment,
-- then {id, record, more} of each that is here; {id, tombstone} of one that was; {id} of one that is on its way out.
-- uses: call
-- keys: queue jobs more tombs leaving
local problem = strange()
if problem then return problem end
local answer = {the_time()}
for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(request))) do
  local id, seen = request[i], nil
  if value then
    seen = {id, value, redis.call('HGET', K.more, id) or ''}
  elseif redis.call('HEXISTS', K.leaving, id) == 1 then
    seen = {id}
  else
    local tomb = redis.call('HGET', K.tombs, id)
    seen = tomb and {id, tomb}
  end
  if seen then answer[#answer + 1] = seen end
end
return answer

-- asking: children of this queue that have not asked all of their parents yet. The request is their ids (nothing: any), for
-- how many microseconds they must have been at it, how many of those to pass over, and how many to answer with at most.
-- Answers with the moment, then {child, since when, record} of each.
-- uses: call, record, child
-- keys: queue jobs asking
local problem = strange()
if problem then return problem end
local now, ids, least, passed, most = the_time(), unpack(request, 1, 4)
-- Who has asked again in the same moment has a later one: see `ask`.
local until_ = least > 0 and now - least or now + AT_ONCE
if #ids == 0 then ids = redis.call('ZRANGEBYSCORE', K.asking, '-inf', until_, 'LIMIT', passed, most) end
local answer = {now}
for _, id in ipairs(ids) do
  local since, value = redis.call('ZSCORE', K.asking, id), redis.call('HGET', K.jobs, id)
  if since and value and has(read_record(value).flags, WAITS) then
    answer[#answer + 1] = {id, tonumber(since), value}
  elseif since then
    redis.call('ZREM', K.asking, id)
  end
end
return answer

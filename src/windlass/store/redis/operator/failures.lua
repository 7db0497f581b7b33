-- failures: the latest failed and dead jobs. Request: the maximum, and the moment and the id before which to begin.
-- Reply: {id, record, details} of each.
--! effect: reads
--! uses: byte_order
local most, at, before = unpack(request, 1, 3)
local MAX_TOGETHER = 1000  -- failures of one moment
local answer = {}
local members = redis.call('ZREVRANGEBYSCORE', K.failures, at, '-inf', 'WITHSCORES', 'LIMIT', 0, most + MAX_TOGETHER)
for i = 1, #members, 2 do
  local id, moment = members[i], tonumber(members[i + 1])
  if #answer == most then break end
  if moment < at or comes_before(id, before) then
    local value = redis.call('HGET', K.jobs, id)
    if value then answer[#answer + 1] = {id, value, redis.call('HGET', K.details, id) or ''} end
  end
end
return answer

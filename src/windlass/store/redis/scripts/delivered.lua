-- delivered: what was in `outbox` has come to its queue. The request is {field, letter} of each: what was written there
-- since, and says something else, stays.
-- uses: call
-- keys: queue outbox
local problem = strange()
if problem then return problem end
for _, entry in ipairs(request) do
  local value = redis.call('HGET', K.outbox, entry[1])
  if value and string.byte(value, 9) == entry[2] then redis.call('HDEL', K.outbox, entry[1]) end
end
return 1

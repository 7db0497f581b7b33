-- delivered: what was in `outbox` has come to its queue. The request is the fields, the blobs are what stood before the
-- result in each: what was written there since stays, though it say the same.
-- uses: call
-- keys: queue outbox
local problem = strange()
if problem then return problem end
for i, field in ipairs(request) do
  local value = redis.call('HGET', K.outbox, field)
  if value and string.sub(value, 1, #ARGV[3 + i]) == ARGV[3 + i] then redis.call('HDEL', K.outbox, field) end
end
return 1

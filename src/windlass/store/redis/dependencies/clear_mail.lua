-- clear_mail: remove delivered mail from `outbox`. Request: fields; blobs: for each what precedes the result, since
-- newer mail in the same field stays.
--! effect: writes
for i, field in ipairs(request) do
  local value = redis.call('HGET', K.outbox, field)
  if value and string.sub(value, 1, #ARGV[3 + i]) == ARGV[3 + i] then redis.call('HDEL', K.outbox, field) end
end
return 1

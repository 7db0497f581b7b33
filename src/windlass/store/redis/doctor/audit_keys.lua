-- audit_keys: idempotency keys that no live job has and no window keeps, some at a time. Request: a cursor (0: the
-- start). Reply: the next cursor (0: the end), how many, and {digest, job} of keys that nothing will free. Jobs of
-- a large batch may be stored after their keys, and moving jobs are in `moving`.
--! effect: reads
--! uses: record, indexes
local cursor, found = unpack(redis.call('HSCAN', K.idempotency_keys, request[1], 'COUNT', 200))
local coming = redis.call('ZCARD', K.batches) > 0
local answer = {cursor, #found / 2}

local function is_orphaned(digest, id)
  if redis.call('ZSCORE', K.key_windows, digest) or redis.call('HEXISTS', K.moving, id) == 1 then return false end
  local value = redis.call('HGET', K.jobs, id)
  if not value then return not coming end
  return finished_letters[string.byte(value)] and true or false
end

for i = 1, #found, 2 do
  if is_orphaned(found[i], found[i + 1]) then answer[#answer + 1] = {found[i], found[i + 1]} end
end
return answer

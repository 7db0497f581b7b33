-- reserve_keys: reserve the idempotency keys of jobs that are about to move here. A reservation is a window, so it ends
-- by itself if the move is abandoned. Request: {id, digest} of each, and for how long (0: release). Reply for each:
-- empty, or the id of the job that has the key.
--! effect: writes
--! uses: idempotency_keys
local now, length, answer = now_micros(), request[2], {}

local function release(id, digest)
  local mine = redis.call('HGET', K.idempotency_keys, digest) == id and redis.call('HEXISTS', K.jobs, id) == 0
  if mine and redis.call('ZREM', K.key_windows, digest) == 1 then redis.call('HDEL', K.idempotency_keys, digest) end
  return nil
end

local function reserve(id, digest)
  local holder = take_key(id, digest, now)
  if not holder then redis.call('ZADD', K.key_windows, now + length, digest) end
  return holder
end

for i, entry in ipairs(request[1]) do
  local act = length == 0 and release or reserve
  answer[i] = act(entry[1], entry[2]) or ''
end
return answer

-- reserve_keys: reserve the idempotency keys of jobs that are about to move here. A reservation is a window, so it ends
-- by itself if the move is abandoned. Request: {id, digest, end} of each, and for how long (0: release the reservation
-- with this end). Reply for each: the end of its reservation, 0 if it needs none, or the id of the job that has the key.
--! effect: writes
--! uses: idempotency_keys
local now, length, answer = now_micros(), request[2], {}

-- Another move of the same job may have reserved the key since, with another end.
local function release(id, digest, ends)
  local current = tonumber(redis.call('ZSCORE', K.key_windows, digest) or 0)
  if current ~= ends or redis.call('HGET', K.idempotency_keys, digest) ~= id then return 0 end
  redis.call('ZREM', K.key_windows, digest)
  redis.call('HDEL', K.idempotency_keys, digest)
  return 0
end

local function reserve(id, digest)
  -- Another move has brought the job here: it has its key for as long as it lives, not for a window.
  if redis.call('HEXISTS', K.jobs, id) == 1 then return 0 end
  local holder = take_key(id, digest, now)
  if holder then return holder end
  redis.call('ZADD', K.key_windows, now + length, digest)
  return now + length
end

for i, entry in ipairs(request[1]) do
  local id, digest, ends = unpack(entry, 1, 3)
  answer[i] = length == 0 and release(id, digest, ends) or reserve(id, digest)
end
return answer

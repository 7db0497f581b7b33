-- hold: idempotency keys. A live job has its key; one that has ended has it until its window is over.
-- uses: record
-- keys: keys windows

-- Who has the key now: an id, or nil. A window that is over is as good as none.
local function key_holder(digest, now)
  local holder = redis.call('HGET', K.keys, digest)
  if not holder then return nil end
  local ends = redis.call('ZSCORE', K.windows, digest)
  if ends and tonumber(ends) <= now then return nil end
  return holder
end

-- The key is this job's: nil, or the id of another one that has it.
local function take_key(id, digest, now)
  local holder = key_holder(digest, now)
  if holder and holder ~= id then return holder end
  redis.call('HSET', K.keys, digest, id)
  redis.call('ZREM', K.windows, digest)
  return nil
end

-- The job has ended: its key is free, at once or after its window. What another one has taken since stays with it.
local function release_key(id, r, now)
  local fields = fields_of(r)
  local digest, window = fields[KEY_DIGEST], fields[WINDOW]
  if redis.call('HGET', K.keys, digest) ~= id then return end
  if window and window > 0 then
    redis.call('ZADD', K.windows, now + window, digest)
  else
    redis.call('HDEL', K.keys, digest)
    redis.call('ZREM', K.windows, digest)
  end
end

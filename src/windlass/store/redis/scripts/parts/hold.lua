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

-- Nobody has the key, unless another one than this has taken it.
local function free_key(id, digest)
  if redis.call('HGET', K.keys, digest) ~= id then return end
  redis.call('HDEL', K.keys, digest)
  redis.call('ZREM', K.windows, digest)
end

-- The job has ended: its key is free, at once or after its window.
local function release_key(id, r, now)
  local fields = fields_of(r)
  local digest, window = fields[KEY_DIGEST], fields[WINDOW]
  if not window or window == 0 then
    free_key(id, digest)
  elseif redis.call('HGET', K.keys, digest) == id then
    redis.call('ZADD', K.windows, now + window, digest)
  end
end

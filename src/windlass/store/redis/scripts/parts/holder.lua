-- holder: who has an idempotency key, and how it becomes free.
-- uses: record
-- keys: jobs keys windows
-- Who has the key of this digest, if `id` is what `keys` says: the id and the letter of a live job, or no letter for one
-- that ended within its window; nil if the key is free.
local function key_holder(digest, id, now)
  local until_ = redis.call('ZSCORE', K.windows, digest)
  if until_ then
    if tonumber(until_) > now then return id, nil end
    return nil
  end
  local value = redis.call('HGET', K.jobs, id)
  if not value then return nil end
  return id, string.byte(value)
end

-- A job has the key now, whoever had it before.
local function take_key(digest, id)
  redis.call('HSET', K.keys, digest, id)
  redis.call('ZREM', K.windows, digest)
end

-- A job has ended: its key is free, at once or after its window, unless another has it by now.
local function release_key(id, r, now)
  if not has(r.flags, KEYED) then return end
  local fields = fields_of(r)
  local digest, window = fields[KEY_DIGEST], fields[WINDOW]
  if redis.call('HGET', K.keys, digest) ~= id then return end
  if window and window > 0 then
    redis.call('ZADD', K.windows, now + window, digest)
  else
    redis.call('HDEL', K.keys, digest)
  end
end

-- idempotency_keys: a live job has its key; a finished one keeps it until its window is over.
--! uses: record

-- The id of the key's holder, or nil. A window that is over does not count.
local function key_holder(digest, now)
  local holder = redis.call('HGET', K.idempotency_keys, digest)
  if not holder then return nil end
  local ends = redis.call('ZSCORE', K.key_windows, digest)
  if ends and tonumber(ends) <= now then return nil end
  return holder
end

-- Take the key for this job: nil, or the id of another job that has it.
local function take_key(id, digest, now)
  local holder = key_holder(digest, now)
  if holder and holder ~= id then return holder end
  redis.call('HSET', K.idempotency_keys, digest, id)
  redis.call('ZREM', K.key_windows, digest)
  return nil
end

-- Clear up to `max_count` windows that are over, with their keys; returns how many.
local function clear_windows(now, max_count)
  local over = redis.call('ZRANGEBYSCORE', K.key_windows, '-inf', now, 'LIMIT', 0, max_count)
  if #over == 0 then return 0 end
  redis.call('HDEL', K.idempotency_keys, unpack(over))
  redis.call('ZREM', K.key_windows, unpack(over))
  return #over
end

-- Free the keys of ended jobs, at once or after their windows, unless another job has them by now. `ended` is {id,
-- digest, window (nil: none)} of each, `digests` those digests. A live job's key has no window.
local function release_keys(ended, digests, now)
  if #ended == 0 then return end
  local freed, windows = {}, {}
  for i, holder in ipairs(redis.call('HMGET', K.idempotency_keys, unpack(digests))) do
    local id, digest, window = unpack(ended[i], 1, 3)
    if holder == id and window and window > 0 then
      windows[#windows + 1] = now + window
      windows[#windows + 1] = digest
    elseif holder == id then
      freed[#freed + 1] = digest
    end
  end
  if #freed > 0 then redis.call('HDEL', K.idempotency_keys, unpack(freed)) end
  if #windows == 0 then return end
  clear_windows(now, #windows)  -- up to twice as many as are added: they can be too many for the coordinator alone
  redis.call('ZADD', K.key_windows, unpack(windows))
end

local function release_key(id, r, now)
  local digest = fields_of(r)[KEY_DIGEST]
  release_keys({{id, digest, fields_of(r)[WINDOW]}}, {digest}, now)
end

-- Free the key of a job that moved to another queue.
local function free_key(id, digest) release_keys({{id, digest}}, {digest}) end

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

-- Jobs have ended: their keys are free, at once or after their windows; what another one has taken since stays with it.
-- `ended` is {id, digest, window (nil: none)} of each, `digests` those digests. A live job's key has no window.
local function release_keys(ended, digests, now)
  if #ended == 0 then return end
  local freed, windows = {}, {}
  for i, holder in ipairs(redis.call('HMGET', K.keys, unpack(digests))) do
    local id, digest, window = unpack(ended[i], 1, 3)
    if holder == id and window and window > 0 then
      windows[#windows + 1] = now + window
      windows[#windows + 1] = digest
    elseif holder == id then
      freed[#freed + 1] = digest
    end
  end
  if #freed > 0 then redis.call('HDEL', K.keys, unpack(freed)) end
  if #windows > 0 then redis.call('ZADD', K.windows, unpack(windows)) end
end

local function release_key(id, r, now)
  local digest = fields_of(r)[KEY_DIGEST]
  release_keys({{id, digest, fields_of(r)[WINDOW]}}, {digest}, now)
end

-- The job has gone to another queue, and its key with it.
local function free_key(id, digest) release_keys({{id, digest}}, {digest}) end

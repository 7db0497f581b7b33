-- batch: a large hand-in, staged in portions. In `stage` the field `batch` is its head: how many portions are staged,
-- which one is unfolded next, and when it was committed (0: it is not). `batch:number` is a portion: an intake and its
-- blobs. In `batches` is when somebody last did something for it.
-- keys: stage batches
local GONE = 3

local function batch_head(batch)
  local head = redis.call('HGET', K.stage, batch)
  if head then return struct.unpack('>I4I4I8', head) end
end

local function set_batch(batch, staged, next_, moment, now)
  redis.call('HSET', K.stage, batch, struct.pack('>I4I4I8', staged, next_, moment))
  redis.call('ZADD', K.batches, now, batch)
end

local function end_batch(batch)
  redis.call('HDEL', K.stage, batch)
  redis.call('ZREM', K.batches, batch)
end

local function portion_field(batch, number) return string.format('%s:%.0f', batch, number) end

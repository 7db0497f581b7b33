-- staged_batch: a large enqueue batch, staged in portions. In `staged`, the field `BATCH` is its head: number of
-- staged portions, the next one to store, and when it was committed (0: not yet). `BATCH:NUMBER` is a portion: an
-- enqueue batch and its blobs. `batches` has the moment from which it counts as abandoned (tidy.py).
local GONE = 3
local IDLE, ABANDONED = 5000000, 600000000  -- microseconds without progress of a committed, or an uncommitted batch

local function batch_head(batch)
  local head = redis.call('HGET', K.staged, batch)
  if head then return struct.unpack('>I4I4I8', head) end
end

local function set_batch(batch, staged, next_, moment, now)
  redis.call('HSET', K.staged, batch, struct.pack('>I4I4I8', staged, next_, moment))
  redis.call('ZADD', K.batches, now + (moment > 0 and IDLE or ABANDONED), batch)
end

local function end_batch(batch)
  redis.call('HDEL', K.staged, batch)
  redis.call('ZREM', K.batches, batch)
end

local function portion_field(batch, number) return string.format('%s:%.0f', batch, number) end

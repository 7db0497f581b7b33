-- known: whether jobs were handed in before: they are here, under a tombstone, or on their way to another queue.
-- keys: jobs tombs leaving
local function known_ids(ids)
  local known = redis.call('HMGET', K.jobs, unpack(ids))
  for _, key in ipairs({K.tombs, K.leaving}) do
    if redis.call('EXISTS', key) == 1 then
      for i, value in ipairs(redis.call('HMGET', key, unpack(ids))) do known[i] = known[i] or value end
    end
  end
  return known
end

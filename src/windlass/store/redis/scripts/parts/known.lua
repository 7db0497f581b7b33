-- known: whether jobs were handed in before: they are here, under a tombstone, or on their way to another queue. A
-- tombstone whose time is over is as good as none, though nobody has cleared it away.
-- keys: jobs tombs buried leaving
local function known_ids(ids, now)
  local known = redis.call('HMGET', K.jobs, unpack(ids))
  if redis.call('EXISTS', K.leaving) == 1 then
    for i, value in ipairs(redis.call('HMGET', K.leaving, unpack(ids))) do known[i] = known[i] or value end
  end
  if redis.call('EXISTS', K.tombs) == 0 then return known end
  for i, tomb in ipairs(redis.call('HMGET', K.tombs, unpack(ids))) do
    if tomb and not known[i] then
      local ends = tonumber(redis.call('ZSCORE', K.buried, ids[i]) or 0)
      if ends > now then known[i] = tomb end
    end
  end
  return known
end

-- known_ids: whether ids are known: stored, with a tombstone, or moving. An expired tombstone does not count, even
-- if it is not cleared yet.
local function known_ids(ids, now)
  local known = redis.call('HMGET', K.jobs, unpack(ids))
  if redis.call('EXISTS', K.moving, K.tombstones) == 0 then return known end
  if redis.call('EXISTS', K.moving) == 1 then
    for i, value in ipairs(redis.call('HMGET', K.moving, unpack(ids))) do known[i] = known[i] or value end
  end
  for i, tombstone in ipairs(redis.call('HMGET', K.tombstones, unpack(ids))) do
    if tombstone and not known[i] then
      local ends = tonumber(redis.call('ZSCORE', K.tombstone_times, ids[i]) or 0)
      if ends > now then known[i] = tombstone end
    end
  end
  return known
end

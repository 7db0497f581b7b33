-- moved_jobs: the tombstone of a job that moved to another queue: `> 7`, with its version.
--! keys: tombstones, tombstone_times
local REMEMBERED = 86400000000

local function moved_version(tombstone)
  return tonumber(string.match(tombstone, '^> (%d+)$'))
end

local function remember_moved(id, version, now)
  redis.call('HSET', K.tombstones, id, string.format('> %.0f', version))
  redis.call('ZADD', K.tombstone_times, now + REMEMBERED, id)
end

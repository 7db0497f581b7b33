-- moved: the tombstone that a job leaves in a queue from which it was moved: `> 7`, with its version. Whoever hands it in
-- again, or carries it again, learns that it was here.
-- keys: tombs buried
local REMEMBERED = 86400000000

local function moved_version(tomb)
  return tonumber(string.match(tomb, '^> (%d+)$'))
end

local function remember_moved(id, version, now)
  redis.call('HSET', K.tombs, id, string.format('> %.0f', version))
  redis.call('ZADD', K.buried, now + REMEMBERED, id)
end

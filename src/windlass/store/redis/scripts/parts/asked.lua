-- asked: what every script is given. ARGV[1] is the store that the caller knows, ARGV[2] its moment (empty: the
-- server's own), ARGV[3] the request; blobs that are not text come after that.
local request = cmsgpack.unpack(ARGV[3])

local function the_time()
  if ARGV[2] ~= '' then return tonumber(ARGV[2]) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

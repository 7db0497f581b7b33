-- request: the arguments of every script. ARGV[1]: the id of the caller's store; ARGV[2]: its clock (empty: the
-- server's); ARGV[3]: the request; then blobs.
local request = cmsgpack.unpack(ARGV[3])

local function now_micros()
  if ARGV[2] ~= '' then return tonumber(ARGV[2]) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

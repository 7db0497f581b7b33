-- raise_version: store the version of the key map, unless it is higher already. Request: the version, and whether
-- the step is breaking: then `oldest`, the lowest version whose code works with these keys, is raised too.
--! scope: global
--! effect: writes
local version, breaking = request[1], request[2]
local before = tonumber(redis.call('HGET', K.meta, 'version')) or 0
local oldest = tonumber(redis.call('HGET', K.meta, 'oldest')) or before
if breaking then oldest = math.max(oldest, version) end
redis.call('HSET', K.meta, 'version', math.max(version, before), 'oldest', oldest)
return math.max(version, before)

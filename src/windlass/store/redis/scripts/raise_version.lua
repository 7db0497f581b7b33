-- raise_version: write down that the keys are of this version, unless they are of a higher one. The request is its number.
-- of the office
-- keys: meta
local version = cmsgpack.unpack(ARGV[3])
local before = tonumber(redis.call('HGET', K.meta, 'version')) or 0
if version > before then redis.call('HSET', K.meta, 'version', version) end
return math.max(version, before)

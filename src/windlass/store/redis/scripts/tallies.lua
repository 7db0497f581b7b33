-- tallies: whether the indexes of this queue have as many entries as its counters say. The answer is {index, how many it
-- should have, how many it has} of each that is wrong.
-- uses: call
-- keys: queue counts jobs ids ready pend due rare line parked ended
local problem = strange()
if problem then return problem end
local wrong = {}
local function check(place, expected, found)
  if expected ~= found then wrong[#wrong + 1] = {place, expected, found} end
end

local function counted(letters)
  local jobs = 0
  for letter in string.gmatch(letters, '.') do jobs = jobs + tonumber(redis.call('HGET', K.counts, letter) or 0) end
  return jobs
end

local pending = 0
for _, jobs in ipairs(redis.call('HVALS', K.pend)) do pending = pending + tonumber(jobs) end
local jobs = redis.call('HLEN', K.jobs)
check('counts', jobs, counted('stblkprfcdx'))
check('ids', jobs, redis.call('ZCARD', K.ids))
check('ready', counted('p'), redis.call('ZCARD', K.ready))
check('pend', counted('p'), pending)
check('due', counted('stf'), redis.call('ZCARD', K.due))
check('line', counted('l'), redis.call('ZCARD', K.line))
check('parked', counted('k'), redis.call('ZCARD', K.parked))
check('ended', counted('cdx'), redis.call('ZCARD', K.ended))
check('rare', counted('fdx'), redis.call('ZCARD', K.rare))
return wrong

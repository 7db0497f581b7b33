-- check_counts: compare the sizes of indexes with the counters. Reply: {index, expected, found} of each that differs.
--! effect: reads
local wrong = {}
local function check(name, expected, found)
  if expected ~= found then wrong[#wrong + 1] = {name, expected, found} end
end

local function counted(letters)
  local jobs = 0
  for letter in string.gmatch(letters, '.') do jobs = jobs + tonumber(redis.call('HGET', K.counts, letter) or 0) end
  return jobs
end

local pending = 0
for _, jobs in ipairs(redis.call('HVALS', K.pending_counts)) do pending = pending + tonumber(jobs) end
local jobs = redis.call('HLEN', K.jobs)
check('counts', jobs, counted('stblkprfcdx'))
check('ids', jobs, redis.call('ZCARD', K.ids))
check('ready', counted('p'), redis.call('ZCARD', K.ready))
check('pending_counts', counted('p'), pending)
check('due', counted('stf'), redis.call('ZCARD', K.due))
check('waiting_for_key', counted('l'), redis.call('ZCARD', K.waiting_for_key))
check('parked', counted('k'), redis.call('ZCARD', K.parked))
check('drop_times', counted('cdx'), redis.call('ZCARD', K.drop_times))
check('by_status', counted('fdx'), redis.call('ZCARD', K.by_status))
return wrong

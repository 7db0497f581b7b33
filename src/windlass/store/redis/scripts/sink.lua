-- sink: leases that have lapsed go. What they held is then put back queue by queue, by whoever asks, and until that is
-- done whoever asks next is told of them too: the one before may have died.
-- of the office
-- The request is how many runners at most. The answer is the runners, their berths, and 1 if whoever asks should ask again
-- at once: some leases were not told yet of a silence, or there are more berths than one answer has.
-- uses: office, wreck
local problem = strange()
if problem then return problem end
local MOST_SUNK, MOST_BERTHS = 200, 1000
local now, most = the_time(), request[1]

local function lapsed(limit)
  return redis.call('ZRANGEBYSCORE', K.lapses, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
end

-- As long as nobody seems dead, looking is not being heard of.
local told = #lapsed(1) == 0 or feel_pulse(now)
local free = math.max(0, math.min(most, MOST_SUNK) - redis.call('HLEN', K.wrecks))
for _, runner in ipairs(told and lapsed(free) or {}) do sink(runner, read_lease(runner, now).worker, now) end
local runners, berths, wrecks = {}, {}, redis.call('HSCAN', K.wrecks, 0, 'COUNT', MOST_SUNK)[2]
for i = 1, #wrecks, 2 do
  if #runners == most or #berths >= MOST_BERTHS then return {runners, berths, #runners < most and 1 or 0} end
  runners[#runners + 1] = wrecks[i]
  add_berths(berths, wrecks[i + 1], wrecks[i])
end
return {runners, berths, told and 0 or 1}

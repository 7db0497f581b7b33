-- sink: leases that have lapsed go. What they held is then put back queue by queue, by whoever asks, and until that is
-- done whoever asks next is told of them too: the one before may have died.
-- of the office
-- The request is how many runners at most. The answer is the runners, and their berths.
-- uses: office, wreck
local problem = strange()
if problem then return problem end
local now, most = the_time(), request[1]

local function lapsed(limit)
  return redis.call('ZRANGEBYSCORE', K.lapses, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
end

-- As long as nobody seems dead, looking is not being heard of.
if #lapsed(1) > 0 then feel_pulse(now) end
for _, runner in ipairs(lapsed(math.max(0, most - redis.call('HLEN', K.wrecks)))) do
  sink(runner, read_lease(runner).worker, now)
end
local runners, berths, wrecks = {}, {}, redis.call('HGETALL', K.wrecks)
for i = 1, math.min(#wrecks, 2 * most), 2 do
  runners[#runners + 1] = wrecks[i]
  add_berths(berths, wrecks[i + 1], wrecks[i])
end
return {runners, berths}

-- salvaged: all that these runners held is put back. The request is a list of runners.
-- of the office
-- uses: office, berth
-- keys: wrecks
local problem = strange()
if problem then return problem end
for _, runner in ipairs(request) do
  local worker = redis.call('HGET', K.wrecks, runner)
  if worker then
    for _, berth in ipairs(berths_from(worker .. '\0' .. runner .. '\0')) do redis.call('ZREM', K.berths, berth) end
    redis.call('HDEL', K.wrecks, runner)
  end
end
return 1

-- wreck: a runner that is gone, from when its lease goes until all that it held is put back. It never comes back.
-- uses: pulse, berth, gone
-- keys: wrecks

local function sink(runner, worker, now)
  drop_lease(runner)
  remember_gone(runner, now)
  redis.call('HSET', K.wrecks, runner, worker)
end

local function add_berths(answer, worker, runner)
  for _, berth in ipairs(berths_from(worker .. '\0' .. runner .. '\0')) do answer[#answer + 1] = berth end
end

-- end_runner: a runner has ended, and its lease goes. The request is the runner, the answer its berths.
-- of the office
-- uses: office, wreck
local problem = strange()
if problem then return problem end
local runner, now, answer = request[1], the_time(), {}
local lease = read_lease(runner, now)
if lease then sink(runner, lease.worker, now) end
local worker = redis.call('HGET', K.wrecks, runner)
if worker then add_berths(answer, worker, runner) end
return answer

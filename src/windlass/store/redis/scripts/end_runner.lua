-- end_runner: a runner has ended, and its lease goes. The request is the runner, the answer its berths.
-- of the office
-- uses: office, wreck
local problem = strange()
if problem then return problem end
local runner, answer = request[1], {}
local lease = read_lease(runner)
if lease then sink(runner, lease.worker, the_time()) end
local worker = redis.call('HGET', K.wrecks, runner)
if worker then add_berths(answer, worker, runner) end
return answer

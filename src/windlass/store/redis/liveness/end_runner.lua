-- end_runner: remove the lease of a runner that ended. Request: runner. Reply: its registrations.
--! scope: global
--! effect: writes
--! memory: any
--! uses: global_call, dead_runners
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
local runner, now, answer = request[1], now_micros(), {}
local lease = read_lease(runner, now)
if lease then remove_runner(runner, lease.worker, now) end
local worker = redis.call('HGET', K.dead_runners, runner)
if worker then add_registrations(answer, worker, runner) end
return answer

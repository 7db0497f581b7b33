-- end_runner: remove the lease of a runner that ended. Request: runner. Reply: its registrations.
--! scope: global
--! effect: writes
--! uses: runners
local runner, now, answer = request[1], now_micros(), {}
local lease = read_lease(runner, now)
if lease then remove_runner(runner, lease.worker, now) end
local worker = redis.call('HGET', K.dead_runners, runner)
if worker then add_registrations(answer, worker, runner) end
return answer

-- register_runner: record that a runner may hold jobs in queues, before it claims there, so that a rescue finds them.
-- Request: runner, queues. Reply: how long its lease holds; 0: over, -1: none.
--! scope: global
--! effect: writes
--! uses: lease_activity, runners
local runner, queues = unpack(request, 1, 2)
local now = now_micros()
local lease = read_lease(runner, now)
if not lease then return -1 end
if lease.expires <= now then return 0 end
for _, queue in ipairs(queues) do redis.call('ZADD', K.registrations, 0, registration_of(lease.worker, runner, queue)) end
return lease.expires - now

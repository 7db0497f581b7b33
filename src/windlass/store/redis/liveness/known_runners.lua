-- known_runners: the runners that have claimed in this queue.
--! effect: reads
--! uses: queue_call
--! keys: queue, leases
local problem = check_store()
if problem then return problem end
return redis.call('HKEYS', K.leases)

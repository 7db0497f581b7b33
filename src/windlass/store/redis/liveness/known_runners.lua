-- known_runners: the runners that have claimed in this queue.
--! effect: reads
return redis.call('HKEYS', K.leases)

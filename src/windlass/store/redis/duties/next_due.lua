-- next_due: how long until `admit` or `expire` has work here. Request: which of them. Reply, like theirs: 0, and how
-- long (nothing: none). As it only reads, it does not wait for replicas.
--! effect: reads
--! missing_queue: skip
local now = now_micros()
local first
if request == 'expire' then
  first = redis.call('ZRANGE', K.expiring, 0, 0, 'WITHSCORES')
elseif redis.call('EXISTS', K.stalled_keys) == 1 or redis.call('HEXISTS', K.queue, 'assigning_tenants') == 1 then
  return {0, 0}
else
  first = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')
end
return {0, first[2] and first[2] - now}

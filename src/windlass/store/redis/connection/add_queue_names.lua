-- add_queue_names: store names of queues in a global set. Request: `queues` or `parked_queues`, and the names.
--! scope: global
--! effect: writes
--! keys: queues, parked_queues
local key, names = K[request[1]], request[2]
for at = 1, #names, 1000 do redis.call('SADD', key, unpack(names, at, math.min(at + 999, #names))) end
return 1

-- resign: give up the leadership, if it is ours. The term stays, so that the next one is larger. Request:
-- candidate.
--! scope: global
--! effect: writes
--! memory: any
--! uses: global_call
--! keys: leadership
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
if redis.call('HGET', K.leadership, 'holder') == request[1] then redis.call('HDEL', K.leadership, 'holder') end
return 1

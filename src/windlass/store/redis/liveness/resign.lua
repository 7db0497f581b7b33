-- resign: give up the leadership, if it is ours. The term stays, so that the next one is larger. Request:
-- candidate.
--! scope: global
--! effect: writes
if redis.call('HGET', K.leadership, 'holder') == request[1] then redis.call('HDEL', K.leadership, 'holder') end
return 1

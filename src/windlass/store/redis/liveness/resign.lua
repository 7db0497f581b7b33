-- resign: give up the leadership, if the candidate has it. The term is kept, so that the next one is higher. Request:
-- candidate.
--! scope: global
--! effect: writes
if redis.call('HGET', K.leadership, 'holder') == request[1] then redis.call('HDEL', K.leadership, 'holder') end
return 1

-- resign: leave the coordinator's office, if it is ours. The term stays, so that the next one is larger.
-- of the office
-- The request is the candidate.
-- uses: office
-- keys: leader
local problem = strange()
if problem then return problem end
if redis.call('HGET', K.leader, 'holder') == request[1] then redis.call('HDEL', K.leader, 'holder') end
return 1

-- campaign: take the coordinator's office if it is free, keep it if it is ours; who has it clears dead workers away.
-- of the office
-- The request is candidate, length. The answer is the number of the term, 0 if another has the office.
-- uses: office, pulse, crowd
-- keys: leader
local problem = strange()
if problem then return problem end
local now = the_time()
local candidate, length = unpack(request, 1, 2)
local holder, term, expires = unpack(redis.call('HMGET', K.leader, 'holder', 'term', 'expires'), 1, 3)
local current = holder and tonumber(expires) > now
if current and holder ~= candidate then return 0 end
feel_pulse(now)
term = (tonumber(term) or 0) + (current and 0 or 1)
redis.call('HSET', K.leader, 'holder', candidate, 'term', term, 'expires', string.format('%.0f', now + length))
forget_dead(now)
return term

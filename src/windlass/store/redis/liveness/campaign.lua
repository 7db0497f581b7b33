-- campaign: take the leadership if it is free, or keep it; the leader forgets silent workers. Request: candidate,
-- length. Reply: the term; 0: another process leads.
--! scope: global
--! effect: writes
--! uses: lease_activity, workers
local now = now_micros()
local candidate, length = unpack(request, 1, 2)
local holder, term, expires = unpack(redis.call('HMGET', K.leadership, 'holder', 'term', 'expires'), 1, 3)
local current = holder and tonumber(expires) > now
if current and holder ~= candidate then return 0 end
check_silence(now)
term = (tonumber(term) or 0) + (current and 0 or 1)
redis.call('HSET', K.leadership, 'holder', candidate, 'term', term, 'expires', string.format('%.0f', now + length))
forget_silent_workers(now)
return term

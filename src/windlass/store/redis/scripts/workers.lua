-- workers: who is alive, and in which queues runners may hold jobs. The answer is a list of {worker, since when and what
-- it says, last beat}, and all berths.
-- of the office
-- uses: office, crowd, berth
local problem = strange()
if problem then return problem end
local now, found = the_time(), {}
local beats = redis.call('ZRANGEBYSCORE', K.beats, '(' .. string.format('%.0f', now - SILENT_AFTER),
  '(' .. string.format('%.0f', now + SILENT_AFTER), 'WITHSCORES')
for i = 1, #beats, 2 do
  found[#found + 1] = {beats[i], redis.call('HGET', K.workers, beats[i]), string.format('%.0f', beats[i + 1])}
end
return {found, redis.call('ZRANGE', K.berths, 0, -1)}

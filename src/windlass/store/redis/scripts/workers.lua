-- workers: who is alive. The answer is a list of {since when and what it says, last beat}.
-- of the office
-- uses: office, crowd
local problem = strange()
if problem then return problem end
local now, found = the_time(), {}
local beats = redis.call('ZRANGEBYSCORE', K.beats, '(' .. string.format('%.0f', now - SILENT_AFTER),
  '(' .. string.format('%.0f', now + SILENT_AFTER), 'WITHSCORES')
for i = 1, #beats, 2 do
  local info = redis.call('HGET', K.workers, beats[i])
  if info then found[#found + 1] = {info, string.format('%.0f', beats[i + 1])} end
end
return found

-- live_workers: workers with a recent heartbeat. Reply: {start time and report, last heartbeat} of each.
--! scope: global
--! effect: reads
--! uses: workers
local now, found = now_micros(), {}
local beats = redis.call('ZRANGEBYSCORE', K.heartbeats, '(' .. string.format('%.0f', now - SILENT_AFTER),
  '(' .. string.format('%.0f', now + SILENT_AFTER), 'WITHSCORES')
for i = 1, #beats, 2 do
  local info = redis.call('HGET', K.workers, beats[i])
  if info then found[#found + 1] = {info, string.format('%.0f', beats[i + 1])} end
end
return found

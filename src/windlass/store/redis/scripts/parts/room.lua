-- room: jobs have stopped to run. Where a queue had as many of them as may run at once, that lets others start.
-- uses: hint
-- keys: queue counts
local function made_room(jobs)
  local most = tonumber(redis.call('HGET', K.queue, 'max_concurrency') or nil)
  if jobs == 0 or not most then return end
  local running, pending = unpack(redis.call('HMGET', K.counts, 'r', 'p'))
  running = tonumber(running or 0)
  if running < most and running + jobs >= most and tonumber(pending or 0) > 0 then announce() end
end

-- running_limit: publish a hint when jobs end in a queue that was at its concurrency limit.
--! uses: hint
--! keys: queue, counts
local function hint_if_room(jobs)
  local max_count = tonumber(redis.call('HGET', K.queue, 'max_concurrency') or nil)
  if jobs == 0 or not max_count then return end
  local running, pending = unpack(redis.call('HMGET', K.counts, 'r', 'p'))
  running = tonumber(running or 0)
  if running < max_count and running + jobs >= max_count and tonumber(pending or 0) > 0 then publish_hint() end
end

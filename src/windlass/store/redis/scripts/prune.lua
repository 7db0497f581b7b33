-- prune: finished jobs whose time is over go, those first that may go longest; so do old tombstones and windows of keys.
-- The request is how many at most. The answer is the ids of the jobs.
-- uses: call, record, bury
-- keys: queue jobs ended keys windows
local problem = strange()
if problem then return problem end
local now, most = the_time(), request[1]
local ids = redis.call('ZRANGEBYSCORE', K.ended, '-inf', now, 'LIMIT', 0, most)
local jobs = {}
if #ids > 0 then
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    if value then jobs[ids[i]] = read_record(value) else redis.call('ZREM', K.ended, ids[i]) end
  end
end
drop_all(jobs, now)
clear_tombs(now, 2 * most)
local over = redis.call('ZRANGEBYSCORE', K.windows, '-inf', now, 'LIMIT', 0, most)
if #over > 0 then
  redis.call('HDEL', K.keys, unpack(over))
  redis.call('ZREM', K.windows, unpack(over))
end
return ids

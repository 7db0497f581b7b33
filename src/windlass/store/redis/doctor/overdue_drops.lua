-- overdue_drops: finished jobs that should have been dropped. Request: by how long at least. Reply: how many, and
-- the longest.
--! effect: reads
local now = now_micros()
local jobs = redis.call('ZCOUNT', K.drop_times, '-inf', string.format('(%.0f', now - request[1]))
local first = redis.call('ZRANGE', K.drop_times, 0, 0, 'WITHSCORES')
return {jobs, jobs > 0 and now - tonumber(first[2]) or 0}

-- counts: number of jobs by status letter: letter and number alternately.
--! effect: reads
--! uses: queue_call
--! keys: queue, counts
local problem = check_store()
if problem then return problem end
return redis.call('HGETALL', K.counts)

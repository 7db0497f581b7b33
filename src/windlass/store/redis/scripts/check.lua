-- check: whether new jobs would be stored, in a queue that may not be there yet; nothing is changed. Request and answer
-- are those of enqueue.
-- uses: call, intake
-- keys: queue
local mark = redis.call('HGET', K.queue, 'store')
if mark and mark ~= ARGV[1] then return redis.error_reply('WINDLASS_EMPTIED') end
local known, found, refusal = judge(request, the_time(), false)
return refusal or answer_of(request, known, found)

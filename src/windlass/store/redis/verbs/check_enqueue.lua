-- check_enqueue: whether new jobs would be stored, in a queue that may not exist yet; changes nothing. Request and
-- reply as of enqueue.
--! effect: reads
--! store: any
--! uses: enqueue_check
local store = redis.call('HGET', K.queue, 'store')
if store and store ~= ARGV[1] then return redis.error_reply('WINDLASS_EMPTIED') end
local known, found, refusal = check_batch(request, now_micros(), false)
return refusal or answer_of(request, known, found)

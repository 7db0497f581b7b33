-- stage_batch: store a portion of a large batch invisibly, until all of it is committed. Request: batch, number
-- from 1; blobs: the enqueue batch and its blobs. Reply as of enqueue, by what would be stored now; {3}: earlier
-- portions are missing.
--! effect: grows
--! uses: enqueue_check, staged_batch
local now = now_micros()
local batch, number = request[1], request[2]
local staged, _, moment = batch_head(batch)
if (staged or 0) ~= number - 1 or (moment or 0) > 0 then return {GONE} end
local new_jobs = cmsgpack.unpack(ARGV[4])
local known, found, refusal = check_batch(new_jobs, now, false)
if refusal then return refusal end
redis.call('HSET', K.staged, portion_field(batch, number), cmsgpack.pack({unpack(ARGV, 4)}))
set_batch(batch, number, 1, 0, now)
return answer_of(new_jobs, known, found)

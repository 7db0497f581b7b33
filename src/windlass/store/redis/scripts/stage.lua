-- stage: a portion of a large hand-in is kept, and nothing of it is seen, until all of it is committed. The request is
-- batch and number, from 1; blobs: the intake, and its blobs. Answers like enqueue, by what would be stored now; {3} if
-- the portions before it are gone.
-- takes jobs in
-- uses: call, intake, batch
-- keys: queue
local problem = strange()
if problem then return problem end
local now = the_time()
local batch, number = request[1], request[2]
local staged, _, moment = batch_head(batch)
if (staged or 0) ~= number - 1 or (moment or 0) > 0 then return {GONE} end
local intake = cmsgpack.unpack(ARGV[4])
local known, found, refusal = judge(intake, now, false)
if refusal then return refusal end
redis.call('HSET', K.stage, portion_field(batch, number), cmsgpack.pack({unpack(ARGV, 4)}))
set_batch(batch, number, 1, 0, now)
return answer_of(intake, known, found)

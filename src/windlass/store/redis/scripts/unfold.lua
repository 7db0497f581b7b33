-- unfold: the next portion of a committed hand-in is stored. It was checked when it was staged, and cannot be refused: a
-- key that another job took since answers with that job. The request is the batch. Answers with how many portions are
-- left, the number of the one that was stored (0: none was left), and then like enqueue.
-- uses: call, store, batch
-- keys: queue
local problem = strange()
if problem then return problem end
local now = the_time()
local staged, number, moment = batch_head(request)
if not staged or moment == 0 then return {0, 0, 0} end
local field = portion_field(request, number)
local blobs = cmsgpack.unpack(redis.call('HGET', K.stage, field))
local intake = cmsgpack.unpack(table.remove(blobs, 1))
local known, found = judge(intake, now, true)
local asking, stirred = store(intake, blobs, moment, now, known, found)
redis.call('HDEL', K.stage, field)
if number == staged then end_batch(request) else set_batch(request, staged, number + 1, moment, now) end
return {staged - number, number, unpack(answer_of(intake, known, found, asking, stirred))}

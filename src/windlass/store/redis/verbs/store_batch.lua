-- store_batch: store the next portion of a committed batch. It was checked when it was staged and cannot be
-- refused: if another job has taken a key since, that job is returned. Request: batch. Reply: portions left, number of
-- the stored one (0: none), then as of enqueue.
--! effect: writes
--! uses: store_jobs, staged_batch
local now = now_micros()
local staged, number, moment = batch_head(request)
if not staged or moment == 0 then return {0, 0, 0} end
local field = portion_field(request, number)
local blobs = cmsgpack.unpack(redis.call('HGET', K.staged, field))
local batch = cmsgpack.unpack(table.remove(blobs, 1))
local known, found = check_batch(batch, now, true)
local to_register, parents_changed = store_jobs(batch, blobs, moment, now, known, found)
redis.call('HDEL', K.staged, field)
if number == staged then end_batch(request) else set_batch(request, staged, number + 1, moment, now) end
return {staged - number, number, unpack(answer_of(batch, known, found, to_register, parents_changed))}

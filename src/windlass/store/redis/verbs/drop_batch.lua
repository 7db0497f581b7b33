-- drop_batch: drop a batch that was not committed, some portions at a time, the last ones first. Request: batch.
-- Reply: portions left.
--! effect: writes
--! uses: staged_batch
local staged, next_, moment = batch_head(request)
if not staged or moment > 0 then return 0 end
local left = math.max(0, staged - 50)
for number = left + 1, staged do redis.call('HDEL', K.staged, portion_field(request, number)) end
if left == 0 then end_batch(request) else set_batch(request, left, next_, moment, now_micros()) end
return left

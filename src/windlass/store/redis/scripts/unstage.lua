-- unstage: a hand-in that was not committed goes, some portions at a time, the last ones first. The request is the batch.
-- Answers with how many portions are left.
-- uses: call, batch
-- keys: queue
local problem = strange()
if problem then return problem end
local staged, next_, moment = batch_head(request)
if not staged or moment > 0 then return 0 end
local left = math.max(0, staged - 50)
for number = left + 1, staged do redis.call('HDEL', K.stage, portion_field(request, number)) end
if left == 0 then end_batch(request) else set_batch(request, left, next_, moment, the_time()) end
return left

-- commit_batch: commit a staged batch: from here on all of it will be stored. Request: batch, number of portions.
-- Reply: {0}; {1}: the queue was closed; {3}: portions are missing, because it was abandoned.
--! effect: writes
--! uses: staged_batch
local batch, portions = request[1], request[2]
local staged, next_, moment = batch_head(batch)
if staged ~= portions then return {GONE} end
if moment > 0 then return {0} end
if redis.call('HGET', K.queue, 'closed') == '1' then return {1} end
local now = now_micros()
set_batch(batch, staged, next_, now, now)
return {0}

-- flip: a staged hand-in is committed: from here on all of it will come. The request is batch and how many portions it
-- has. Answers {0}; {1} if the queue was closed meanwhile; {3} if it is not all there, because it lay for too long.
-- uses: call, batch
-- keys: queue
local problem = strange()
if problem then return problem end
local batch, portions = request[1], request[2]
local staged, next_, moment = batch_head(batch)
if staged ~= portions then return {GONE} end
if moment > 0 then return {0} end
if redis.call('HGET', K.queue, 'closed') == '1' then return {1} end
local now = the_time()
set_batch(batch, staged, next_, now, now)
return {0}

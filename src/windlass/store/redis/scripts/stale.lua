-- stale: large hand-ins of which nobody has done anything for a while. The request is how long is a while: for those that
-- are committed, and for those that are not. Answers with {batch, 1 if it is committed}, of a few of them.
-- uses: call, batch
-- keys: queue
local problem = strange()
if problem then return problem end
local now = the_time()
local found = {}
for _, batch in ipairs(redis.call('ZRANGEBYSCORE', K.batches, '-inf', now - request[1], 'LIMIT', 0, 100)) do
  local _, _, moment = batch_head(batch)
  local committed = (moment or 0) > 0
  if committed or tonumber(redis.call('ZSCORE', K.batches, batch)) <= now - request[2] then
    found[#found + 1] = {batch, committed and 1 or 0}
  end
end
return found

-- unfinished_work: work that dead processes left. Reply: how many of the keys for moves, checks, notifications and mail
-- exist; then {batch, 1 if committed} of some abandoned large batches.
--! effect: reads
--! uses: staged_batch
local found = {redis.call('EXISTS', K.moving, K.parent_checks, K.parent_changes, K.outbox)}
for _, batch in ipairs(redis.call('ZRANGEBYSCORE', K.batches, '-inf', now_micros(), 'LIMIT', 0, 100)) do
  local _, _, moment = batch_head(batch)
  local committed = (moment or 0) > 0
  found[#found + 1] = {batch, committed and 1 or 0}
end
return found

-- prune_samples: drop old samples of a kind and step. Request: kind, step, first interval to keep, the maximum.
-- Reply: how many.
--! scope: global
--! effect: writes
--! uses: stats
local kind, step, slot, max_count = unpack(request, 1, 4)
local past = '(' .. step_head(kind, step, slot)
local places = redis.call('ZRANGEBYLEX', K.sample_index, '[' .. step_head(kind, step, 0), past, 'LIMIT', 0, max_count)
for _, place in ipairs(places) do
  redis.call('HDEL', K.samples, place)
  redis.call('ZREM', K.sample_index, place)
end
return #places

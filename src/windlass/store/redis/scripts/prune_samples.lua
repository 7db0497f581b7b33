-- prune_samples: drop samples of a kind and step before a slot. The answer is how many.
-- of the office
-- The request is kind, step, slot, how many at most.
-- uses: office, sample
local problem = strange()
if problem then return problem end
local kind, step, slot, most = unpack(request, 1, 4)
local past = '(' .. step_head(kind, step, slot)
local places = redis.call('ZRANGEBYLEX', K.steps, '[' .. step_head(kind, step, 0), past, 'LIMIT', 0, most)
for _, place in ipairs(places) do
  redis.call('HDEL', K.samples, place)
  redis.call('ZREM', K.steps, place)
end
return #places

-- prune_stats: drop meters or samples of a range of fields. Request: `meters` or `samples`, its index, the maximum.
-- ARGV[4], ARGV[5]: the first field, and the first to keep. Reply: how many.
--! scope: global
--! effect: writes
--! keys: meters, meter_index, samples, sample_index
local kind, index, max_count = unpack(request, 1, 3)
local fields = redis.call('ZRANGEBYLEX', K[index], '[' .. ARGV[4], '(' .. ARGV[5], 'LIMIT', 0, max_count)
for _, field in ipairs(fields) do
  redis.call('HDEL', K[kind], field)
  redis.call('ZREM', K[index], field)
end
return #fields

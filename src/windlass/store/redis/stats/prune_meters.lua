-- prune_meters: drop meters of old intervals. Request: length of an interval, retention, the maximum. Reply: how
-- many.
--! scope: global
--! effect: writes
--! uses: stats
local length, kept, max_count = unpack(request, 1, 3)
local before = now_micros() - kept
local places = redis.call('ZRANGEBYLEX', K.meter_index, '-', '(' .. slot_head(before - before % length), 'LIMIT', 0, max_count)
for _, place in ipairs(places) do
  redis.call('HDEL', K.meters, place)
  redis.call('ZREM', K.meter_index, place)
end
return #places

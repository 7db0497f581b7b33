-- prune_meters: drop the meters of slots that began before a moment. The answer is how many.
-- of the office
-- The request is the length of a slot, how long they are kept, how many at most.
-- uses: office, meter
local problem = strange()
if problem then return problem end
local length, kept, most = unpack(request, 1, 3)
local before = the_time() - kept
local places = redis.call('ZRANGEBYLEX', K.slots, '-', '(' .. slot_head(before - before % length), 'LIMIT', 0, most)
for _, place in ipairs(places) do
  redis.call('HDEL', K.meters, place)
  redis.call('ZREM', K.slots, place)
end
return #places

-- recent: the meters of a stretch of time, in their order, a portion at a time.
-- of the office
-- The request is the length of a slot; how much of the past, or since when; until when, or nothing; how many at most.
-- ARGV[4] is the place after which to go on, empty at first. The answer is the store's time, and place, meter of each.
-- uses: office, meter
local problem = strange()
if problem then return problem end
local length, past, since, ends, most = unpack(request, 1, 5)
local now = the_time()
since = since or math.max(0, now - past)
local from = ARGV[4] == '' and '[' .. slot_head(since - since % length) or '(' .. ARGV[4]
local places = redis.call('ZRANGEBYLEX', K.slots, from, ends and '(' .. slot_head(ends) or '+', 'LIMIT', 0, most)
local answer = {now}
for _, place in ipairs(places) do
  answer[#answer + 1] = place
  answer[#answer + 1] = redis.call('HGET', K.meters, place)
end
return answer

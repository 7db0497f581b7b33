-- read_meters: meters of a period, in order, some at a time. Request: length of an interval; how much of the past,
-- or since when; until when, or nothing; the maximum. ARGV[4]: the place to continue after, empty at first. Reply:
-- the time, and place, meter of each.
--! scope: global
--! effect: reads
--! uses: stats
local length, past, since, ends, max_count = unpack(request, 1, 5)
local now = now_micros()
since = since or math.max(0, now - past)
local from = ARGV[4] == '' and '[' .. slot_head(since - since % length) or '(' .. ARGV[4]
local places = redis.call('ZRANGEBYLEX', K.meter_index, from, ends and '(' .. slot_head(ends) or '+', 'LIMIT', 0, max_count)
local answer = {now}
for _, place in ipairs(places) do
  answer[#answer + 1] = place
  answer[#answer + 1] = redis.call('HGET', K.meters, place)
end
return answer

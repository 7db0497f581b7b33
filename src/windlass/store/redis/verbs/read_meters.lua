-- read_meters: meters of a period, in order, some at a time. Request: length of an interval; how much of the past,
-- or since when; until when, or nothing; how many places to look at; of which queue and type, or of any. ARGV[4]:
-- the place to continue after, empty at first. Reply: the time; the last place (empty: the end); and place, meter of
-- each.
--! scope: global
--! effect: reads
--! uses: stats
local length, past, since, ends, max_count, queue, type = unpack(request, 1, 7)
local MAX_READ = 200  -- a meter has two histograms

local function wanted(place)
  if not queue and not type then return true end
  local named, typed = string.match(string.sub(place, START_SIZE + 1), '^(.*)%z(.*)$')
  return (not queue or named == queue) and (not type or typed == type)
end

local now = now_micros()
since = since or math.max(0, now - past)
local from = ARGV[4] == '' and '[' .. start_head(since - since % length) or '(' .. ARGV[4]
local places = redis.call('ZRANGEBYLEX', K.meter_index, from, ends and '(' .. start_head(ends) or '+', 'LIMIT', 0, max_count)
local answer = {now, #places == max_count and places[max_count] or ''}
for i, place in ipairs(places) do
  if wanted(place) then
    answer[#answer + 1] = place
    answer[#answer + 1] = redis.call('HGET', K.meters, place)
    if #answer == 2 + 2 * MAX_READ and i < #places then
      answer[2] = place
      break
    end
  end
end
return answer

-- read_meters: meters of a period, in order, some at a time. Request: length of an interval; how much of the past,
-- or since when; until when, or nothing; how many fields to look at; of which queue and type, or of any. ARGV[4]:
-- the field to continue after, empty at first. Reply: the time; the last field (empty: the end); and field, meter of
-- each.
--! scope: global
--! effect: reads
--! uses: stats
local length, past, since, ends, max_count, queue, type = unpack(request, 1, 7)
local MAX_READ = 200  -- a meter has two histograms

local function wanted(field)
  if not queue and not type then return true end
  local named, typed = string.match(string.sub(field, START_SIZE + 1), '^(.*)%z(.*)$')
  return (not queue or named == queue) and (not type or typed == type)
end

local now = now_micros()
since = since or math.max(0, now - past)
local from = ARGV[4] == '' and '[' .. start_head(since - since % length) or '(' .. ARGV[4]
local fields = redis.call('ZRANGEBYLEX', K.meter_index, from, ends and '(' .. start_head(ends) or '+', 'LIMIT', 0, max_count)
local answer = {now, #fields == max_count and fields[max_count] or ''}
for i, field in ipairs(fields) do
  if wanted(field) then
    answer[#answer + 1] = field
    answer[#answer + 1] = redis.call('HGET', K.meters, field)
    if #answer == 2 + 2 * MAX_READ and i < #fields then
      answer[2] = field
      break
    end
  end
end
return answer

-- samples: those of a kind in a stretch of time, a portion at a time: of one queue, one type or all; and those that have
-- no name, to see what was made.
-- of the office
-- The request is kind, step, since, until, queue, type, how many to look at. ARGV[4] is the place after which to go on,
-- empty at first. The answer is the place where it stopped (empty: at the end), and place, value of each.
-- uses: office, sample
local problem = strange()
if problem then return problem end
local kind, step, since, ends, queue, type, most = unpack(request, 1, 7)

local function wanted(place)
  local named, typed = string.match(string.sub(place, PLACE_SIZE + 1), '^(.*)%z(.*)$')
  return (not queue or named == '' or named == queue) and (not type or typed == '' or typed == type)
end

local from = ARGV[4] == '' and '[' .. step_head(kind, step, since) or '(' .. ARGV[4]
local places = redis.call('ZRANGEBYLEX', K.steps, from, '(' .. step_head(kind, step, ends), 'LIMIT', 0, most)
local answer = {#places == most and places[most] or ''}
for _, place in ipairs(places) do
  if wanted(place) then
    answer[#answer + 1] = place
    answer[#answer + 1] = redis.call('HGET', K.samples, place)
  end
end
return answer

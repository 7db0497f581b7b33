-- see_schedules: schedules by their names, as they are, and what is done about their ticks just now.
-- of the office
-- The request is {name} of each. The answer is the store's time, up to which tick removed schedules may have jobs, and
-- standing, settings and plan of each, or nothing: of as many of them as are not too much text.
-- uses: standing
-- keys: schedules
local problem = strange()
if problem then return problem end
local MOST_TEXT = 500000
local standings, plans = named(K.standings), named(K.plans)
local answer, size = {the_time(), tonumber(redis.call('HGET', K.meta, 'furthest')) or 0}, 0
for i, each in ipairs(request) do
  if size > MOST_TEXT then break end
  local settings = standings[i] and (redis.call('HGET', K.schedules, each[1]) or '')
  answer[i + 2] = settings and {standings[i], settings, plans[i]}
  size = size + (settings and #settings or 0) + (plans[i] and #plans[i] or 0)
end
return answer

-- set_schedules: write schedules, each if nobody has written it since it was read, and nobody is at its ticks.
-- of the office
-- The request is, of each, {name, stamp that it had (0: there was none), next tick (nothing: none to come)}; blobs are
-- standing without stamp and settings of each. The answer is 1 for each that was written, else 0.
-- uses: standing
-- keys: schedules
local problem = strange()
if problem then return problem end
local standings, plans = named(K.standings), named(K.plans)
local answer, written, settings = {}, {}, {}
for i, each in ipairs(request) do
  local stamp = standings[i] and read_standing(standings[i]).stamp or 0
  answer[i] = (stamp == each[2] and not plans[i]) and 1 or 0
  if answer[i] == 1 then
    written[#written + 1] = {each[1], ARGV[2 * i + 2], each[3]}
    settings[#settings + 1] = each[1]
    settings[#settings + 1] = ARGV[2 * i + 3]
  end
end
if #settings > 0 then redis.call('HSET', K.schedules, unpack(settings)) end
write_standings(written, the_time())
return answer

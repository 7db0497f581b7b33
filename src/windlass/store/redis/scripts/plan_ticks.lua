-- plan_ticks: what is decided of schedules is written down before any queue is told. While a plan is there, its schedule
-- changes only by it, and it goes before whatever another has decided: whoever finds it finishes it.
-- of the office
-- takes jobs in
-- The request is, of each schedule, {name, when it was made, revision, next tick}; blobs are their plans. The answer is
-- the store's time, up to which tick removed schedules may have jobs, and for each nothing (it does not stand so any more) or
-- its plan with its number in front, and its standing.
-- uses: standing
local problem = strange()
if problem then return problem end
local now = the_time()
local standings, plans = named(K.standings), named(K.plans)
local answer, planned = {now, tonumber(redis.call('HGET', K.meta, 'furthest')) or 0}, {}
local number = new_stamps(#request, now)
for i, each in ipairs(request) do
  local s = standings[i] and read_standing(standings[i])
  answer[i + 2] = false
  if s and not s.paused and s.made == each[2] and s.revision == each[3] and s.next == each[4] then
    local plan = plans[i]
    if not plan then
      plan = struct.pack('>I8', number + i - 1) .. ARGV[3 + i]
      planned[#planned + 1] = each[1]
      planned[#planned + 1] = plan
    end
    answer[i + 2] = {plan, standings[i]}
  end
end
if #planned > 0 then redis.call('HSET', K.plans, unpack(planned)) end
return answer

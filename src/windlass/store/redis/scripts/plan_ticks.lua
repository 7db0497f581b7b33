-- plan_ticks: what is decided of schedules is written down before any queue is told. While a plan is there, its schedule
-- changes only by it, and it goes before whatever another has decided: whoever finds it finishes it.
-- of the office
-- takes jobs in
-- The request is {name} of each schedule; blobs are, of each, revision, next tick and when it was made, as they stand behind
-- the stamp, and the plan. The answer is the store's time, up to which tick removed schedules may have jobs, the number
-- of the first plan, and for each its standing and the plan that was there before, or nothing; nothing at all if it does not
-- stand so any more.
-- uses: standing
local problem = strange()
if problem then return problem end
local now = the_time()
local standings, plans = named(K.standings), named(K.plans)
local number = new_stamps(#request, now)
local answer, planned = {now, tonumber(redis.call('HGET', K.meta, 'furthest')) or 0, number}, {}
for i, each in ipairs(request) do
  local standing, plan, n = standings[i], plans[i], 2 * i + 2
  answer[n], answer[n + 1] = false, plan
  if standing and string.sub(standing, 9, 32) == ARGV[n] and string.byte(standing, PAUSED_AT) == 0 then
    answer[n] = standing
    if not plan then
      planned[#planned + 1] = each[1]
      planned[#planned + 1] = struct.pack('>I8', number + i - 1) .. ARGV[n + 1]
    end
  end
end
if #planned > 0 then redis.call('HSET', K.plans, unpack(planned)) end
return answer

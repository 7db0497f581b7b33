-- advance: ticks were seen to as planned, and their schedules go on; each if its plan is still there.
-- of the office
-- The request is, of each, {name, number of the plan, next tick (nothing: none to come)}; blobs are their standings without
-- stamp. The answer is how many went on: for the others somebody else was there before.
-- uses: standing
local problem = strange()
if problem then return problem end
local plans = named(K.plans)
local written, over = {}, {}
for i, each in ipairs(request) do
  if plans[i] and struct.unpack('>I8', plans[i]) == each[2] then
    written[#written + 1] = {each[1], ARGV[3 + i], each[3]}
    over[#over + 1] = each[1]
  end
end
write_standings(written, the_time())
if #over > 0 then redis.call('HDEL', K.plans, unpack(over)) end
return #over

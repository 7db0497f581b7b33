-- known: which of these ids were ever handed in to this queue: they are here, under a tombstone, or on their way to
-- another one. The request is the ids; the answer those that are known.
-- uses: call, known
-- keys: queue
local problem = strange()
if problem then return problem end
local answer = {}
for i, value in ipairs(known_ids(request, the_time())) do
  if value then answer[#answer + 1] = request[i] end
end
return answer

-- held: what a runner runs in this queue. The request is its name; the answer {id, attempt} of each.
-- uses: call, held
-- keys: queue
local problem = strange()
if problem then return problem end
local answer = {}
each_held(request[1], function(id, r) answer[#answer + 1] = {id, r.attempt} end)
return answer

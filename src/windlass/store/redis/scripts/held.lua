-- held: what a runner runs in this queue, some claims at a time. The request is its name, and the number of the claim to go
-- on after (-1: from the first). The answer is the number of the last claim that was looked at (-1: there are no more),
-- then {id, attempt} of each job.
-- uses: call, held
-- keys: queue
local problem = strange()
if problem then return problem end
local CLAIMS, MOST_READ = 20, 500
local runner, after = unpack(request, 1, 2)
local claims, answer, read = claims_of(runner, after, CLAIMS), {-1}, 0
for i, member in ipairs(claims) do
  read = read + each_of_claim(member, function(id, r) answer[#answer + 1] = {id, r.attempt} end)
  if read >= MOST_READ or i == CLAIMS then
    answer[1] = select(2, claim_of(member))
    break
  end
end
return answer

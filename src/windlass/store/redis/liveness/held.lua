-- held: jobs that a runner is running in this queue, some claims at a time. Request: runner, and the claim to
-- continue after (-1: the start). Reply: the last claim (-1: the end), then {id, attempt, claim} of each job.
--! effect: reads
--! uses: claims
local CLAIMS, MAX_READ, MAX_TEXT = 20, 500, 1000000
local runner, after = unpack(request, 1, 2)
local claims, answer, read = claims_of(runner, after, CLAIMS), {-1}, 0
local text = 0
for i, member in ipairs(claims) do
  local jobs, size = each_of_claim(member, function(id, r) answer[#answer + 1] = {id, r.attempt, r.claim} end)
  read, text = read + jobs, text + size
  if read >= MAX_READ or text > MAX_TEXT or i == CLAIMS then
    answer[1] = select(2, claim_of(member))
    break
  end
end
return answer

-- busy: how many jobs each runner holds in this queue, some claims at a time. The request is the runner and the number of
-- the claim to go on after (an empty name: from the first). The answer is runner and number of the last claim that was
-- looked at (an empty name: there are no more), then runner, jobs by turns.
-- uses: call, claims
-- keys: queue
local problem = strange()
if problem then return problem end
local CLAIMS = 100
local runner, claim = unpack(request, 1, 2)
local from = runner == '' and '-' or '(' .. claim_head(runner, claim) .. '\255'
local members = redis.call('ZRANGEBYLEX', K.held, from, '+', 'LIMIT', 0, CLAIMS)
local jobs, answer = {}, {'', 0}
for _, member in ipairs(members) do
  local name, number, head = claim_of(member)
  jobs[name] = (jobs[name] or 0) + tonumber(redis.call('HGET', K.left, head) or 0)
  if #members == CLAIMS then answer[1], answer[2] = name, number end
end
for name, number in pairs(jobs) do
  answer[#answer + 1] = name
  answer[#answer + 1] = number
end
return answer

-- held_counts: how many jobs each runner holds in this queue, some claims at a time. Request: runner and claim to
-- continue after (an empty name: the start). Reply: runner and number of the last claim (an empty name: the end),
-- then runner, jobs alternately.
--! effect: reads
--! uses: claims
local CLAIMS = 100
local runner, claim = unpack(request, 1, 2)
local from = runner == '' and '-' or '(' .. claim_head(runner, claim) .. '\255'
local members = redis.call('ZRANGEBYLEX', K.held, from, '+', 'LIMIT', 0, CLAIMS)
local jobs, answer = {}, {'', 0}
for _, member in ipairs(members) do
  local name, number, head = claim_of(member)
  jobs[name] = (jobs[name] or 0) + tonumber(redis.call('HGET', K.claim_counts, head) or 0)
  if #members == CLAIMS then answer[1], answer[2] = name, number end
end
for name, number in pairs(jobs) do
  answer[#answer + 1] = name
  answer[#answer + 1] = number
end
return answer

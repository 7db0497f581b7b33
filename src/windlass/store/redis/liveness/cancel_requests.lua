-- cancel_requests: running jobs of these runners with a cancel request. Request: runners. Reply: {id, attempt,
-- runner} of each.
--! effect: reads
--! uses: record
local MAX_COUNT = 500  -- the caller polls
local asked, answer = {}, {}
for _, runner in ipairs(request) do asked[runner] = true end
for _, id in ipairs(redis.call('SRANDMEMBER', K.cancels, MAX_COUNT)) do
  local r = read_job(id)
  if r and r.letter == RUNNING and asked[r.runner] then answer[#answer + 1] = {id, r.attempt, r.runner} end
end
return answer

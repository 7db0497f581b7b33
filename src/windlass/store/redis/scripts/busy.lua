-- busy: how many jobs each runner holds in this queue: a flat list of runner, jobs.
-- uses: call
-- keys: queue left
local problem = strange()
if problem then return problem end
local left, jobs, answer = redis.call('HGETALL', K.left), {}, {}
for i = 1, #left, 2 do
  local runner = string.match(left[i], '^(.*):')
  jobs[runner] = (jobs[runner] or 0) + left[i + 1]
end
for runner, number in pairs(jobs) do
  answer[#answer + 1] = runner
  answer[#answer + 1] = number
end
return answer

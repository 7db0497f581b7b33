-- cancels: running jobs of these runners that somebody wants stopped. The request is a list of runners; the answer is
-- id, attempt, runner of each.
-- uses: call, record
-- keys: queue jobs cancels
local problem = strange()
if problem then return problem end
local MOST = 500  -- whoever asks comes again soon
local asked, answer = {}, {}
for _, runner in ipairs(request) do asked[runner] = true end
for _, id in ipairs(redis.call('SRANDMEMBER', K.cancels, MOST)) do
  local value = redis.call('HGET', K.jobs, id)
  local r = value and read_record(value)
  if r and r.letter == RUNNING and asked[r.runner] then answer[#answer + 1] = {id, r.attempt, r.runner} end
end
return answer

-- drop: finished jobs go at somebody's wish. The request is their ids. The answer for each: the letter that it had; less
-- than nothing, the letter that it has, if it is not over; 0 if it is not here.
-- uses: call, record, bury
-- keys: queue jobs
local problem = strange()
if problem then return problem end
local now, answer, jobs = the_time(), {}, {}
for i, id in ipairs(request) do
  local value = redis.call('HGET', K.jobs, id)
  local r = value and read_record(value)
  if not r or jobs[id] then
    answer[i] = 0
  elseif finished_letters[r.letter] then
    jobs[id] = r
    answer[i] = r.letter
  else
    answer[i] = -r.letter
  end
end
drop_all(jobs, now)
return answer

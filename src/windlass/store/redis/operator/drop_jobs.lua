-- drop_jobs: drop finished jobs. Request: ids. Reply for each: the letter that it had; the negative letter of an
-- unfinished job; 0: not here.
--! effect: writes
--! uses: record, drop
local now, answer, jobs = now_micros(), {}, {}
for i, id in ipairs(request) do
  local r = read_job(id)
  if not r or jobs[id] then
    answer[i] = 0
  elseif finished_letters[r.letter] then
    jobs[id] = r
    answer[i] = r.letter
  else
    answer[i] = -r.letter
  end
end
drop_jobs(jobs, now)
return answer

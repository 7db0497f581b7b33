-- drop_unchanged: drop finished jobs that still have a version. Request: {id, version} of each. Reply for each: the
-- letter that it had; the negative letter of an unfinished job; 0: not here, or changed.
--! effect: writes
--! uses: record, drop
local now, answer, jobs = now_micros(), {}, {}
for i, entry in ipairs(request) do
  local id, r = entry[1], read_job(entry[1])
  if not r or r.version ~= entry[2] then
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

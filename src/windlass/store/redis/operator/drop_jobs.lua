-- drop_jobs: drop finished jobs. Request: {id, version} of each; version -1: any. Reply for each: its letter; the
-- negative letter of an unfinished job, which stays; 0: not here, or changed.
--! effect: writes
--! uses: record, drop
local now, answer, jobs = now_micros(), {}, {}
for i, entry in ipairs(request) do
  local id, version = entry[1], entry[2]
  local r = read_job(id)
  if not r or jobs[id] or (version >= 0 and r.version ~= version) then
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

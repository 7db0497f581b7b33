-- prune: drop finished jobs whose retention is over, the longest overdue first; also old tombstones and key
-- windows. Request: the maximum. Reply: 1 if there is more, else 0, and the ids of the jobs.
--! effect: writes
--! uses: record, drop, idempotency_keys
local MAX_CLEARED, PORTION, MAX_TEXT = 500, 25, 1000000
local now, max_count = now_micros(), request[1]
local ids = redis.call('ZRANGEBYSCORE', K.drop_times, '-inf', now, 'LIMIT', 0, max_count)
local jobs, answer, text = {}, {0}, 0
for from = 1, #ids, PORTION do
  if text > MAX_TEXT then
    answer[1] = 1
    break
  end
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids, from, math.min(from + PORTION - 1, #ids)))) do
    local id = ids[from + i - 1]
    local r = value and read_record(value)
    text = text + #(value or '')
    if r and finished_letters[r.letter] then
      jobs[id], answer[#answer + 1] = r, id
    else
      redis.call('ZREM', K.drop_times, id)  -- the job was removed by hand, or a script was stopped: the record decides
    end
  end
end
drop_jobs(jobs, now)
if clear_tombstones(now, MAX_CLEARED) == MAX_CLEARED then answer[1] = 1 end
if clear_windows(now, MAX_CLEARED) == MAX_CLEARED then answer[1] = 1 end
return answer

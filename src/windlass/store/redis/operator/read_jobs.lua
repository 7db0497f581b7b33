-- read_jobs: jobs by id. Request: ids. Reply: how many were looked for (fewer than all if they are much text),
-- then {id, record, details, notes} of each.
--! effect: reads
local PORTION, MAX_TEXT = 25, 1000000
local answer, text, values = {#request}, 0, {}
for i, id in ipairs(request) do
  local at = (i - 1) % PORTION
  if at == 0 then
    if text > MAX_TEXT then
      answer[1] = i - 1
      break
    end
    values = redis.call('HMGET', K.jobs, unpack(request, i, math.min(i + PORTION - 1, #request)))
  end
  local value = values[at + 1]
  if value then
    local details, notes = redis.call('HGET', K.details, id) or '', redis.call('HGET', K.notes, id) or ''
    answer[#answer + 1] = {id, value, details, notes}
    text = text + #value + #details + #notes
  end
end
return answer

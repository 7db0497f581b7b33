-- parent_checks: children of this queue that have not registered with all of their parents. Request: ids (none:
-- any), minimum age in microseconds, how many to skip, the maximum. Reply: the time, then {child, since when,
-- record} of each.
--! effect: writes
--! uses: record, child_state
local now, ids, least, passed, max_count = now_micros(), unpack(request, 1, 4)
-- A repeated request within the same moment has a later one: see `request_parent_check`.
local until_ = least > 0 and now - least or now + CHECK_NOW
if #ids == 0 then ids = redis.call('ZRANGEBYSCORE', K.parent_checks, '-inf', until_, 'LIMIT', passed, max_count) end
local answer = {now}
for _, id in ipairs(ids) do
  local since, value = redis.call('ZSCORE', K.parent_checks, id), redis.call('HGET', K.jobs, id)
  if since and value and has(read_record(value).flags, WAITS_FOR_PARENTS) then
    answer[#answer + 1] = {id, tonumber(since), value}
  elseif since then
    redis.call('ZREM', K.parent_checks, id)
  end
end
return answer

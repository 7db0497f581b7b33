-- ended: finished jobs in the order of their ends, a bounded number at a time. Request: the moment and the id to continue
-- after, and the maximum. Reply: the moment and the id up to which all were read (empty: the end), and {id, record,
-- details} of each. Completed and cancelled jobs are found by the time at which they are dropped, minus the retention.
--! effect: reads
--! uses: record, indexes, byte_order
--! keys: queue, jobs, details, drop_times, failures
local since, after, limit = unpack(request, 1, 3)
local MAX_FOUND, PORTION = 2000, 50
local found, complete_to = {}, nil

local function gather(key, keep, letter)
  local members = redis.call('ZRANGEBYSCORE', key, since + keep, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_FOUND)
  local last
  for i = 1, #members, 2 do
    last = tonumber(members[i + 1]) - keep
    if last > since or comes_before(after, members[i]) then found[#found + 1] = {last, members[i], letter} end
  end
  if #members == 2 * MAX_FOUND and (not complete_to or last < complete_to) then complete_to = last end
end

gather(K.drop_times, retention_of(COMPLETED), COMPLETED)
gather(K.drop_times, retention_of(CANCELLED), CANCELLED)
gather(K.failures, 0, DEAD)
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return comes_before(a[2], b[2])
end)

local answer, count, at = {'', ''}, 0, 0
while at < #found and count < limit do
  local ids = {}
  for i = at + 1, math.min(at + PORTION, #found) do ids[#ids + 1] = found[i][2] end
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    local moment, id, letter = unpack(found[at + i])
    if count == limit or complete_to and moment > complete_to then
      return answer
    end
    answer[1], answer[2] = string.format('%.0f', moment), id
    if value then
      local is, _, _, _, updated = struct.unpack(HEAD_A, value)
      -- Else the retention was changed since, or the status.
      if is == letter and updated == moment then
        count = count + 1
        answer[2 + count] = {id, value, redis.call('HGET', K.details, id) or ''}
      end
    end
  end
  at = at + #ids
end
if at >= #found and not complete_to then answer[1], answer[2] = '', '' end
return answer

-- deliver_mail: apply the states of parents to children of this queue. Request: {child, parent, letter} of each
-- message, and {child, moment} of each child that has all answers; blobs: the result of each message. Reply: `to_do`
-- of this queue, then for each message 1, or 0 if the child has moved.
--! effect: writes
--! uses: dependents, key_queue
local now, dirty_keys, answer = now_micros(), {}, {}

local function deliver(child, parent, letter, result)
  local value = redis.call('HGET', K.jobs, child)
  if not value then return was_moved(child) and 0 or 1 end
  -- A child that is blocked again checks its parents again: this message may be outdated.
  if letter == MOVED or apply_parent_state(child, value, parent, letter, result, now, dirty_keys) then request_parent_check(child, now) end
  return 1
end

-- A child that still waits registers again later: a failover may have lost its registration.
local RECHECK_AFTER = 3600000000
local function checked_all_parents(child)
  local value = redis.call('HGET', K.jobs, child)
  if value and string.byte(value) == BLOCKED then
    redis.call('ZADD', K.parent_checks, now + RECHECK_AFTER, child)
  else
    redis.call('ZREM', K.parent_checks, child)
  end
end

for i, entry in ipairs(request[1]) do answer[i + 1] = deliver(entry[1], entry[2], entry[3], ARGV[3 + i]) end
for _, entry in ipairs(request[2]) do
  local asked = redis.call('ZSCORE', K.parent_checks, entry[1])
  if asked and tonumber(asked) == entry[2] then checked_all_parents(entry[1]) end
end
assign_key_slots(dirty_keys, now)
answer[1] = to_do()
return answer
